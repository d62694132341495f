package cli

import (
	"errors"
	"fmt"
	"strings"

	"auditproxy/internal/nearest"
)

// DidYouMean names the known word that a mistyped one was meant to be, as a part of
// a message that ends with a space; "" if none is near.
func DidYouMean(word string, known []string) string {
	if best := meant(word, known); best != "" {
		return fmt.Sprintf("did you mean %q? ", best)
	}
	return ""
}

func meant(word string, known []string) string { return nearest.Word(word, known, max(1, len(word)/3)) }

// unknownKey is the problem with a key or a variable that is not known.
func unknownKey(name string, known []string) error {
	for _, key := range known {
		if strings.HasPrefix(key, name+".") {
			return fmt.Errorf("has no value of its own; want keys below it, such as %q", key)
		}
	}
	return errors.New("unknown key" + orMeant(name, known))
}

// orMeant is DidYouMean as the end of a message.
func orMeant(word string, known []string) string {
	if hint := DidYouMean(word, known); hint != "" {
		return "; " + strings.TrimSpace(hint)
	}
	return ""
}

// A Problem is one mistake in the configuration.
type Problem struct {
	Key    string // "" if it is about the source as a whole
	Source Source
	Err    error
}

// String names the source and the key: `variable AUDITPROXY_DRAIN: drain: is
// "soon", want a time such as 20ms, 1h30m or 30d`.
func (p Problem) String() string {
	s := p.Source.String() + ": "
	if p.Source.Layer == Default && p.Key != "" {
		s = ""
	}
	if p.Key != "" {
		s += p.Key + ": "
	}
	return s + p.Err.Error()
}

// Problems are all mistakes. Err makes an error of them.
type Problems []Problem

// Err returns one error that names every problem, nil without problems.
func (p Problems) Err() error {
	switch len(p) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("configuration: %v", p[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the configuration has %d problems:", len(p))
	for _, problem := range p {
		fmt.Fprintf(&b, "\n  %v", problem)
	}
	return errors.New(b.String())
}
