package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// A Layer is a source of values. Later layers override earlier ones.
type Layer uint8

// The layers, in the order in which they are read.
const (
	Default  Layer = iota
	System         // the administrator's file
	File           // the user's file
	Variable       // the environment
	Flag           // the command line
)

// A Source is where a value came from.
type Source struct {
	Layer Layer
	Name  string // path of the file, name of the variable, flag with its dashes; "" for Default
}

// String returns the source for a message.
func (s Source) String() string {
	switch s.Layer {
	case Default:
		return "default"
	case Variable:
		return "variable " + s.Name
	case Flag:
		return "flag " + s.Name
	default:
		return s.Name
	}
}

// MarshalText is String.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Values are the values in force. The zero value has none. They are immutable
// after loading, so they may be read concurrently.
type Values struct {
	keys   []Key
	viper  *viper.Viper // checked values of the Go types that Kind names; nil in the zero value
	source map[string]Source
	own    string // what UserFile returns

	enforced map[string]bool
}

// Enforced reports whether the administrator's file enforces the key.
func (v Values) Enforced(key string) bool { return v.enforced[key] }

// UserFile returns the path of --config, else the directory of the user's file, "" if
// neither is known. It need not be there.
func (v Values) UserFile() string { return v.own }

// String returns the value of a Text, Choice or Path.
func (v Values) String(key string) string { return get[string](v, key) }

// List returns the value of a List.
func (v Values) List(key string) []string { return get[[]string](v, key) }

// Bool returns the value of a Bool.
func (v Values) Bool(key string) bool { return get[bool](v, key) }

// Duration returns the value of a Duration.
func (v Values) Duration(key string) time.Duration { return get[time.Duration](v, key) }

// Size returns the value of a Size, in bytes.
func (v Values) Size(key string) int64 { return get[int64](v, key) }

// Count returns the value of a Count.
func (v Values) Count(key string) int64 { return get[int64](v, key) }

// Secret returns the value of a Password.
func (v Values) Secret(key string) Secret { return get[Secret](v, key) }

// get returns the zero value for a key that has none or is of another kind.
func get[T any](v Values, key string) (value T) {
	if v.viper != nil {
		value, _ = v.viper.Get(key).(T)
	}
	return value
}

// Secrets returns the value of a Secrets.
func (v Values) Secrets(key string) []Secret { return get[[]Secret](v, key) }

// Source returns where the value of key came from.
func (v Values) Source(key string) Source { return v.source[key] }

// A Setting is a value for people and for JSON. Secrets are masked.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"` // as written in a variable
	Source Source `json:"source"`
}

// Settings returns all values in the order of the program's table.
func (v Values) Settings() []Setting {
	list := make([]Setting, len(v.keys))
	for i, k := range v.keys {
		list[i] = Setting{k.Name, k.format(v.viper.Get(k.Name)), v.source[k.Name]}
	}
	return list
}

// format writes a value as it would be written in a variable.
func (k Key) format(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []string:
		return strings.Join(value, ",")
	case bool:
		return strconv.FormatBool(value)
	case time.Duration:
		return formatDuration(value)
	case int64:
		if k.Kind == Count {
			return strconv.FormatInt(value, 10)
		}
		return exactSize(value)
	case []Secret:
		masks := make([]string, len(value))
		for i, secret := range value {
			masks[i] = secret.String()
		}
		return strings.Join(masks, ",")
	case Secret:
		if value.Reveal() == "" {
			return ""
		}
		return value.String()
	default:
		return ""
	}
}
