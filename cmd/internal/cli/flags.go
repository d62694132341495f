package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// configFlag names the file to read instead of the user's own.
const configFlag = "config"

// AddFlags defines --config and a flag for each key.
func AddFlags(flags *pflag.FlagSet, keys []Key) {
	flags.String(configFlag, "", "configuration `file` to read instead of your own")
	for _, k := range keys {
		if !k.HasFlag() {
			continue
		}
		usage := k.Usage
		if k.Kind == Choice {
			usage += ": " + strings.Join(k.Choices, ", ")
		}
		f := flags.VarPF(&flagValue{key: k, text: k.Default}, k.Flag(), "", usage)
		if k.Kind == Bool {
			f.NoOptDefVal = "true"
		}
	}
}

// A flagValue keeps a flag's text. Load reads it, so that a wrong one is
// reported together with every other problem.
type flagValue struct {
	key  Key
	text string
	set  bool
}

// String returns the text in force.
func (f *flagValue) String() string { return f.text }

// Set keeps text. A list that is given twice has all entries, a path is meant
// from where the command line was typed. Load refuses a "~user", which no shell
// has expanded.
func (f *flagValue) Set(text string) error {
	switch {
	case f.key.Kind == List && f.set:
		text = f.text + "," + text
	case f.key.Kind == Path && text != "" && Placeholder(text) == "" && !strings.HasPrefix(text, "~") && !f.key.isName(text):
		abs, err := filepath.Abs(text)
		if err != nil {
			return err
		}
		text = abs
	}
	f.text, f.set = text, true
	return nil
}

// Type returns the name of the value in --help.
func (f *flagValue) Type() string { return f.key.Kind.String() }
