package cli

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Kind is the type of a key's value.
type Kind uint8

// The kinds, with the Go type of their values.
const (
	Text     Kind = iota // string
	Choice               // string, one of Key.Choices
	Path                 // string, an absolute path; "~/" is expanded to the home directory
	List                 // []string without empty entries; separated by commas outside files
	Bool                 // bool
	Duration             // time.Duration, not negative: "20ms", "1h30m", "30d"
	Size                 // int64, bytes, not negative: "512KiB", "32MB", "1GiB"
	Password             // Secret; it has no flag, because a command line can be read by all
	Count                // int64, at least 1
	Secrets              // []Secret without empty entries, such as addresses that hold tokens; no flag
)

// kindNames are the names of the kinds, see Kind.String.
var kindNames = [...]string{"text", "word", "path", "list", "bool", "time", "size", "secret", "count", "secrets"}

// String returns the name of a value of this kind in --help and the
// documentation.
func (k Kind) String() string { return kindNames[k] }

// A Key is one setting of a program.
type Key struct {
	Name    string // as in a file, levels separated by dots: "spool.retain_age"
	Kind    Kind
	Default string   // as in a variable; "" for the zero value of the kind
	Choices []string // of a Choice
	Prefix  string   // of a Path: texts that begin with it are names, not paths; "" for none
	Usage   string   // one line for --help
	Varies  bool     // the default depends on who starts the program, so enforcing it needs a value
}

// Flag returns the name of the key's flag without its dashes.
func (k Key) Flag() string {
	return strings.ReplaceAll(strings.ReplaceAll(k.Name, ".", "-"), "_", "-")
}

// isName reports whether a text is a name in place of a path.
func (k Key) isName(s string) bool { return k.Prefix != "" && strings.HasPrefix(s, k.Prefix) }

// HasFlag reports whether the key can be set on a command line. A secret cannot:
// other users can read command lines.
func (k Key) HasFlag() bool { return k.Kind != Password && k.Kind != Secrets }

// Variable returns the name of the key's environment variable.
func (k Key) Variable(program string) string {
	return strings.ToUpper(program + "_" + strings.ReplaceAll(k.Name, ".", "_"))
}

// zero returns the value of a key that has none.
func (k Key) zero() any {
	switch k.Kind {
	case List:
		return []string(nil)
	case Bool:
		return false
	case Duration:
		return time.Duration(0)
	case Size, Count:
		return int64(0)
	case Password:
		return Secret{}
	case Secrets:
		return []Secret(nil)
	default:
		return ""
	}
}

// errNotExpanded reports a value that the caller should have expanded.
var errNotExpanded = errors.New("contains an unexpanded ${NAME}; write the value itself")

// parse reads a value as written in a variable or a flag.
func (k Key) parse(s, home string) (any, error) {
	switch k.Kind { // any content, and in no message
	case Password:
		return newSecret(s), nil
	case Secrets:
		list, err := parseList(s)
		return secrets(list), err
	}
	if Placeholder(s) != "" {
		return nil, errNotExpanded
	}
	switch k.Kind {
	case Choice:
		if !slices.Contains(k.Choices, s) {
			return nil, fmt.Errorf("is %q, want %s", s, alternatives(k.Choices))
		}
		return s, nil
	case Path:
		if k.isName(s) {
			return s, nil
		}
		path, err := parsePath(s, home)
		if err != nil && strings.HasSuffix(k.Name, "password_file") { // s may be the password itself
			return nil, errors.New("is not an absolute path; want that of a file with the password in it")
		}
		return path, err
	case List:
		return parseList(s)
	case Bool:
		// Only the words that YAML has, so that a value means the same everywhere.
		if s != "true" && s != "false" {
			return nil, fmt.Errorf("is %q, want true or false", s)
		}
		return s == "true", nil
	case Duration:
		d, err := ParseDuration(s)
		if err != nil {
			return nil, err
		}
		return d, nil
	case Size:
		return parseSize(s)
	case Count:
		return parseCount(s)
	default:
		return s, nil
	}
}

// fromYAML reads a value as written in a file: typed, never guessed.
func (k Key) fromYAML(v any, home string) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, errors.New("has no value")
	case string:
		if k.Kind == List || k.Kind == Secrets || k.Kind == Bool {
			break
		}
		return k.parse(v, home)
	case bool:
		if k.Kind == Bool {
			return v, nil
		}
	case int:
		if k.Kind == Size || k.Kind == Duration || k.Kind == Count {
			return k.parse(strconv.Itoa(v), home)
		}
	case []any:
		switch k.Kind {
		case List:
			return listFromYAML(v)
		case Secrets:
			list, err := listFromYAML(v)
			return secrets(list), err
		}
	}
	return nil, fmt.Errorf("is %s, want %s", yamlType(v), k.want())
}

func listFromYAML(items []any) (any, error) {
	list := make([]string, len(items))
	for i, item := range items {
		s, ok := item.(string)
		switch {
		case !ok:
			return nil, fmt.Errorf("entry %d is %s, want text", i+1, yamlType(item))
		case s == "":
			return nil, fmt.Errorf("entry %d is empty", i+1)
		case Placeholder(s) != "":
			return nil, errNotExpanded
		}
		list[i] = s
	}
	return list, nil
}

// want describes the value that a file must hold for k.
func (k Key) want() string {
	switch k.Kind {
	case Choice:
		return alternatives(k.Choices)
	case List, Secrets:
		return "a list of texts"
	case Bool:
		return "true or false"
	case Duration:
		return "a time such as 20ms, 1h30m or 30d"
	case Size:
		return "a size such as 512KiB, 32MB or 1GiB"
	case Count:
		return "a whole number above 0, such as 50000"
	default:
		return "text; a number needs quotes"
	}
}

func yamlType(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case string:
		return "text"
	case bool:
		return "true or false"
	case int, int64, uint64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a section"
	default:
		return "a date" // the remaining YAML types; map keys are checked before
	}
}

func alternatives(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	if n := len(quoted); n > 1 {
		return strings.Join(quoted[:n-1], ", ") + " or " + quoted[n-1]
	}
	return strings.Join(quoted, "")
}

func parsePath(s, home string) (any, error) {
	if rest, ok := strings.CutPrefix(s, "~/"); ok && home != "" {
		s = filepath.Join(home, rest)
	}
	switch {
	case s == "":
		return "", nil
	case !filepath.IsAbs(s):
		return nil, fmt.Errorf("is %q, want an absolute path", s)
	case shellVariable(s):
		return nil, fmt.Errorf("is %q, and variables are not expanded; write the path itself", s)
	}
	return filepath.Clean(s), nil
}

// shellVariable reports whether s has a $NAME, as a shell would fill in.
func shellVariable(s string) bool {
	for {
		_, after, ok := strings.Cut(s, "$")
		if !ok {
			return false
		}
		if after != "" && (after[0] == '_' || 'a' <= after[0]|0x20 && after[0]|0x20 <= 'z') {
			return true
		}
		s = after
	}
}

func parseList(s string) (any, error) {
	if s == "" {
		return []string(nil), nil
	}
	list := strings.Split(s, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			return nil, fmt.Errorf("entry %d is empty", i+1)
		}
	}
	return list, nil
}

// secrets hides the entries of a list of texts.
func secrets(list any) []Secret {
	texts, _ := list.([]string)
	hidden := make([]Secret, len(texts))
	for i, text := range texts {
		hidden[i] = newSecret(text)
	}
	return hidden
}

const day = 24 * time.Hour

// ParseDuration reads a time of people: "20ms", "1h30m" or "30d".
func ParseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("is %q, want a time such as 20ms, 1h30m or 30d", s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16) // 179 years, which a Duration holds
		if err != nil {
			return 0, bad
		}
		return time.Duration(n) * day, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, bad
	}
	return d, nil
}

func formatDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// sizeUnits starts with the binary units, largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

const binaryUnits = 4

func parseSize(s string) (any, error) {
	n, err := ParseSize(s)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ParseSize reads a size of people: "512KiB", "32MB" or "1GiB".
func ParseSize(s string) (int64, error) {
	bad := fmt.Errorf("is %q, want a size such as 512KiB, 32MB or 1GiB", s)
	number, unit := s, int64(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n > uint64(math.MaxInt64/unit) {
		return 0, bad
	}
	return int64(n) * unit, nil
}

func parseCount(s string) (any, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("is %q, want a whole number above 0, such as 50000", s)
	}
	return n, nil
}

// exactSize writes n in the unit that makes it shortest.
func exactSize(n int64) string {
	best := strconv.FormatInt(n, 10) + "B"
	for _, u := range sizeUnits {
		if s := strconv.FormatInt(n/u.bytes, 10) + u.name; n != 0 && n%u.bytes == 0 && len(s) < len(best) {
			best = s
		}
	}
	return best
}

// FormatSize rounds a number of bytes for people: "1.5GiB".
func FormatSize(n int64) string {
	for _, u := range sizeUnits[:binaryUnits] {
		if n >= u.bytes {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', 1, 64), ".0") + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// Placeholder returns the first ${…} in s with a name, as MCP clients write
// what they expand before they start a server: ${HOME}, ${HOME:-/root},
// ${env:HOME}, ${workspaceFolder}. It returns "" without one.
func Placeholder(s string) string {
	for {
		_, after, ok := strings.Cut(s, "${")
		if !ok {
			return ""
		}
		name, _, closed := strings.Cut(after, "}")
		if closed && name != "" && (name[0] == '_' || 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z') {
			return "${" + name + "}"
		}
		s = after
	}
}
