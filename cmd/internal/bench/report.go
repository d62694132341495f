package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// How a row is held to its target.
const (
	ratio   = "ratio"    // proxy / relay, at most
	more    = "more"     // a difference, at most
	atLeast = "at least" // the proxy's own value
	atMost  = "at most"  // the proxy's own value
	told    = "told"     // a ratio without a target
)

// A row is one result.
type row struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Relay   float64 `json:"relay"`
	Proxy   float64 `json:"proxy"`
	Compare string  `json:"compare"`
	Value   float64 `json:"value"`  // compared with the target; in unit, unless it is a ratio
	Target  float64 `json:"target"` // as Value
	Pass    bool    `json:"pass"`
	Alone   bool    `json:"alone,omitempty"`        // a relay has no such value
	Missing string  `json:"not_measured,omitempty"` // why it has no result
}

// pass reports whether r meets its target, as precisely as it is printed.
func (r row) pass() bool {
	switch {
	case r.Missing != "":
		return false
	case r.Compare == told:
		return true
	}
	value := math.Round(r.Value*100) / 100
	if r.Compare == atLeast {
		return value >= r.Target
	}
	return value <= r.Target
}

func printTable(w io.Writer, rows []row) error {
	const format = "%-36s %9s %9s %-4s %9s %10s  %s\n"
	if _, err := fmt.Fprintf(w, format, "", "relay", "proxy", "", "", "target", ""); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Missing != "" {
			if _, err := fmt.Fprintf(w, "%-36s not measured: %s\n", r.Name, r.Missing); err != nil {
				return err
			}
			continue
		}
		verdict := "pass"
		switch {
		case !r.Pass:
			verdict = "MISSED"
		case r.Compare == told:
			verdict = ""
		}
		value, target := r.texts()
		relay := number(r.Relay)
		if r.Alone {
			relay = ""
		}
		if _, err := fmt.Fprintf(w, format, r.Name, relay, number(r.Proxy), r.Unit, value, target, verdict); err != nil {
			return err
		}
	}
	return nil
}

// texts returns value and target for a person.
func (r row) texts() (value, target string) {
	switch r.Compare {
	case ratio:
		return fmt.Sprintf("%.2f×", r.Value), "≤ " + strconv.FormatFloat(r.Target, 'f', -1, 64) + "×"
	case told:
		return fmt.Sprintf("%.2f×", r.Value), ""
	case more:
		return signed(r.Value), "≤ " + signed(r.Target)
	case atLeast:
		return number(r.Value), "≥ " + number(r.Target)
	}
	return number(r.Value), "≤ " + number(r.Target)
}

func signed(v float64) string {
	if v < 0 {
		return "−" + number(-v)
	}
	return "+" + number(v)
}

// number prints about three digits.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) || math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
