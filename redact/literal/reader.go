package literal

import "auditproxy/redact/names"

// A Reader reads the values in one text after the other.
type Reader struct {
	Names *names.Classifier
	Text  []byte

	name    names.Folded // the name that is being read
	schemes int          // before the value that is being read
	decoded [2][]byte    // of Unescaped
}
