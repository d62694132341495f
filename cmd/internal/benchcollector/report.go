package main

import (
	"fmt"
	"io"
	"strconv"
)

// How a row is held to its target.
const (
	atLeast = "≥"
	atMost  = "≤"
	told    = "" // without a target
)

// A row is one result.
type row struct {
	name    string
	unit    string
	value   float64
	compare string
	target  float64
}

func (r row) pass() bool {
	switch r.compare {
	case atLeast:
		return r.value >= r.target
	case atMost:
		return r.value <= r.target
	}
	return true
}

func printTable(w io.Writer, rows []row) error {
	const format = "%-52s %10s %-4s %12s  %s\n"
	if _, err := fmt.Fprintf(w, format, "", "collector", "", "target", ""); err != nil {
		return err
	}
	for _, r := range rows {
		target, verdict := "", ""
		if r.compare != told {
			target, verdict = r.compare+" "+number(r.target), "pass"
		}
		if !r.pass() {
			verdict = "MISSED"
		}
		if _, err := fmt.Fprintf(w, format, r.name, number(r.value), r.unit, target, verdict); err != nil {
			return err
		}
	}
	return nil
}

// number prints whole numbers from 10 on, and two decimals below.
func number(v float64) string {
	if v >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
