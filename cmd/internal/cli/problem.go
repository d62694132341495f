package cli

import (
	"errors"
	"fmt"
	"strings"
)

var errUnknownKey = errors.New("unknown key")

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
