package main

import "auditproxy/cmd/internal/cli"

// A checker finds problems in combinations of values that are valid one by one.
type checker struct{ cli.Checker }

// each returns the entries of a list and checks them.
func (c *checker) each(key string, check func(string) error) []string {
	list := c.List(key)
	for _, s := range list {
		if err := check(s); err != nil {
			c.Problem(key, "%q: %w", s, err)
		}
	}
	return list
}
