package cli

import (
	"fmt"
	"io"
)

// masked is the text of every printed Secret.
const masked = "<secret>"

// A Secret prints as <secret> wherever it is printed: by fmt with any verb, as
// JSON, YAML or text, by zap. Reveal gives the value itself. The zero value is
// the empty secret.
type Secret struct {
	// Behind a pointer, because fmt does not call the methods of a value in an
	// unexported field and would print the text.
	value *string
}

// newSecret returns a Secret with this value.
func newSecret(value string) Secret { return Secret{&value} }

// Reveal returns the value.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// String returns "<secret>".
func (s Secret) String() string { return masked }

// Format prints "<secret>" for every verb, %x and %d included.
func (s Secret) Format(f fmt.State, verb rune) { io.WriteString(f, masked) }

// MarshalText returns "<secret>". JSON, YAML and zap call it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }
