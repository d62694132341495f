package risk

import "regexp"

// A commandConfig is the operator's part of the detection of commands. It is
// immutable.
type commandConfig struct {
	Patterns []*regexp.Regexp // of CommandPattern
}

// detectCommand returns what the text does if a shell runs it.
func detectCommand(text string, c *commandConfig) Detectors {
	return 0
}
