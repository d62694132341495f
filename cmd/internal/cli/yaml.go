package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// strictYAML is the decoder of configuration files. Viper's own reads only the
// first document of several, folds the case of names and splits them at dots;
// each could hide a setting behind another.
type strictYAML struct{}

// Decoder returns strictYAML for every format, because YAML is the only one.
func (strictYAML) Decoder(string) (viper.Decoder, error) { return strictYAML{}, nil }

// Decode reads the one document in b into m. An empty file has no settings.
func (strictYAML) Decode(b []byte, m map[string]any) error {
	d := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if err := checkText(&doc); err != nil {
		return err
	}
	if err := doc.Decode(&m); err != nil {
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one YAML document")
	}
	return checkNames("", m)
}

// checkText finds texts without quotes that YAML reads as something else, such as
// passwords: of "!x" nothing would be left.
func checkText(n *yaml.Node) error {
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		return fmt.Errorf(quoteIt, n.Line, "!")
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 && i%2 == 1 && c.Tag == "!!null" && c.Value == "" {
			return fmt.Errorf(quoteIt, c.Line, "{")
		}
		if err := checkText(c); err != nil {
			return err
		}
	}
	return nil
}

// quoteIt reports a text by its line and the character that it starts with.
const quoteIt = "line %d: a text that starts with %q needs quotes"

func checkNames(path string, m map[string]any) error {
	for name, value := range m {
		if name != strings.ToLower(name) || strings.Contains(name, ".") {
			return fmt.Errorf("%s%q: names are in lower case and have no dots; write a level below the other", path, name)
		}
		switch value := value.(type) {
		case map[string]any:
			if err := checkNames(path+name+".", value); err != nil {
				return err
			}
		case map[any]any:
			return fmt.Errorf("%s%s: has a name that is not text", path, name)
		}
	}
	return nil
}

// noToken is how the YAML reader reports a tab, which it does not name.
const noToken = "found character that cannot start any token"

// yamlError locates the error in a file without quoting it: the file named by
// mistake may hold a secret.
func yamlError(err error) error {
	var parse viper.ConfigParseError
	if errors.As(err, &parse) {
		err = parse.Unwrap()
	}
	var wrong *yaml.TypeError
	switch message := err.Error(); {
	case errors.As(err, &wrong):
	case strings.Contains(message, "anchor '"):
		return errors.New(`a text that starts with "*" or "&" needs quotes`)
	case strings.Contains(message, "cannot decode "):
		return errors.New(`a value has a tag of another type; a text that starts with "!" needs quotes`)
	case strings.Contains(message, noToken):
		return errors.New(strings.Replace(message, noToken, "a tab, or a text that starts with a character such as \"@\": indent with spaces, and put such a text in quotes", 1))
	case strings.Contains(message, "invalid map key"):
		return errors.New("a name is not text")
	default:
		return err
	}
	list := slices.Clone(wrong.Errors)
	for i, s := range list {
		if line, _, ok := strings.Cut(s, ": cannot unmarshal "); ok {
			list[i] = line + ": want settings, name: value"
		}
	}
	return errors.New(strings.Join(list, "; "))
}
