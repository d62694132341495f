package approval

import (
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A Scope says for how long an approval holds.
type Scope string

// The scopes. One for longer than once holds for the tool of the call, by the
// same server, and for calls whose detections are all among those of the call.
const (
	Once    Scope = "once"
	Session Scope = "session" // until the proxy ends
	Always  Scope = "always"
)

// maxAnswer is the number of bytes of the largest answer.
const maxAnswer = 4 << 10

// An Answer is how a person answered a question.
type Answer struct {
	Approved bool
	Scope    Scope
	By       string // who answered, by the answer's own account; at most audit.MaxText code points, without control characters
	User     string // who answered, by the operating system; set where an answer is read, never by its text

	// Of entries that always hold:
	Detections []string // of the approved call
	Level      string   // of its risk; "" for any
	ServerKey  string   // of the server; "" for every server

	tool     string // of entries that always hold
	question string // digest of the question, "" if the answer does not name it
}

// encode returns the file of an answer.
func (a *Answer) encode() []byte {
	dst := append([]byte(`{"approved":`), "false"...)
	if a.Approved {
		dst = append(dst[:len(dst)-len("false")], "true"...)
	}
	member := func(name, text string) {
		if text != "" {
			dst = jsontext.AppendQuote(append(append(append(dst, `,"`...), name...), `":`...), text)
		}
	}
	member("scope", string(a.Scope))
	member("by", a.By)
	member("question", a.question)
	member("tool", a.tool)
	member("server_key", a.ServerKey)
	member("level", a.Level)
	if a.tool != "" {
		dst = append(dst, `,"detections":[`...)
		for i, word := range a.Detections {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsontext.AppendQuote(dst, word)
		}
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}

// errUnfinished is the error of a text that is not JSON: it may be the first
// part of one.
var errUnfinished = errors.New("it is not strict JSON")

// parseAnswer reads the file of an answer. An error quotes nothing of the text.
// always allows the members of entries that always hold.
func parseAnswer(text []byte, always bool) (*Answer, error) {
	if !jsontext.Valid(text) {
		return nil, errUnfinished
	}
	a := &Answer{Scope: Once}
	seen := map[string]bool{}
	var bad error
	err := jsontext.Members(string(text), func(name, v string) bool {
		// A name that is written with an escape is unknown: no writer does that.
		if seen[name] {
			bad = errors.New("a member is there twice")
			return false
		}
		seen[name] = true
		switch {
		case name == "approved":
			a.Approved = v == "true"
			if v != "true" && v != "false" {
				bad = errors.New("approved is not true or false")
			}
		case name == "scope":
			a.Scope, bad = parseScope(v)
		case name == "by":
			if a.By, bad = textOf(name, v); bad == nil {
				bad = checkBy(a.By)
			}
		case name == "question":
			a.question, bad = textOf(name, v)
		case name == "tool" && always:
			a.tool, bad = textOf(name, v)
		case name == "server_key" && always:
			if a.ServerKey, bad = textOf(name, v); bad == nil && !validKey(a.ServerKey) {
				bad = errors.New("server_key is not 16 hexadecimal digits")
			}
		case name == "detections" && always:
			a.Detections, bad = wordsOf(v)
		case name == "level" && always:
			if a.Level, bad = textOf(name, v); bad == nil && slices.Index(levels[:], a.Level) < 1 {
				bad = errors.New("level is not low, medium, high or critical")
			}
		default:
			bad = errors.New("it has an unknown member")
		}
		return bad == nil
	})
	switch {
	case bad != nil:
		return nil, bad
	case err != nil:
		return nil, errors.New("it is not an object")
	case !seen["approved"]:
		return nil, errors.New(`it has no member "approved"`)
	}
	return a, nil
}

func parseScope(v string) (Scope, error) {
	text, err := textOf("scope", v)
	switch s := Scope(text); {
	case err != nil:
		return "", err
	case s == Once || s == Session || s == Always:
		return s, nil
	}
	return "", errors.New("scope is not once, session or always")
}

func wordsOf(v string) (words []string, err error) {
	walk := jsontext.Elements(v, func(v string) bool {
		var word string
		word, err = textOf("detections", v)
		words = append(words, word)
		return err == nil
	})
	if walk != nil {
		return nil, errors.New("detections is not a list")
	}
	return words, err
}

func textOf(name, v string) (string, error) {
	if v == "" || v[0] != '"' {
		return "", fmt.Errorf("%s is not a string", name)
	}
	return jsontext.Unquote(v), nil
}

// checkBy refuses a name that could do something at a terminal.
func checkBy(by string) error {
	if !utf8.ValidString(by) {
		return errors.New("by is not UTF-8")
	}
	n := 0
	for _, r := range by {
		// Cf reorders or hides the text around it.
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) || r == utf8.RuneError {
			return errors.New("by has a control character")
		}
		n++
	}
	if n > audit.MaxText {
		return fmt.Errorf("by has more than %d characters", audit.MaxText)
	}
	return nil
}
