package risk

import "auditproxy/mcpproxy/risk/service"

// specialOf returns what a tool is by its name, beyond its category.
func specialOf(list []token, c Category) service.Tool {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = t.word
	}
	access := service.Other
	switch c {
	case Read:
		access = service.Reads
	case Write, Execute:
		access = service.Changes
	}
	return service.New(words, access)
}
