package verify

import (
	"fmt"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/cmd/internal/terminal"
	evidence "auditproxy/schemas/evidence/verify"
	"auditproxy/sink/spool"
)

// An object is what JSON has of a session of a spool: whether it was changed, and
// whether it is damaged.
type object struct {
	*evidence.Result

	Session      string    `json:"session"` // live, dead, ended; "" if it could not be read
	Machine      string    `json:"machine,omitempty"`
	FirstSegment uint32    `json:"first_segment"`
	Lines        int64     `json:"lines"`
	Calls        int64     `json:"calls"`
	Unknown      int64     `json:"unknown"`
	Running      int       `json:"running"`
	Unrecorded   int64     `json:"unrecorded"`
	SetAside     []string  `json:"set_aside,omitempty"`
	Problems     []problem `json:"problems,omitempty"`
	NotShown     int       `json:"problems_not_shown,omitempty"`
}

// conclude prints what both checks found.
func (cfg Config) conclude(checker *evidence.Checker, reports []*report) error {
	r, err := cfg.finish(checker)
	if err != nil {
		return err
	}
	code := r.Exit
	if damage := verdict(reports); damage == cli.ExitFound || code == 0 {
		code = damage
	}
	byID := map[string]*report{}
	for _, r := range reports {
		if r != nil {
			byID[r.SessionID] = r
		}
	}
	p := evidencereport.Printer{Out: cfg.Stdout, Colour: cfg.Colour}
	if cfg.JSON {
		err = p.JSON(r, nil, "", code, func(result *evidence.Result) any {
			d := byID[result.SessionID]
			if d == nil {
				return result
			}
			delete(byID, result.SessionID) // a second result is of what is known of it elsewhere
			return object{result, d.State, d.Machine, d.FirstSegment, d.Lines, d.Calls, d.Unknown, d.Running, d.Unrecorded, d.SetAside, d.Problems, d.NotShown}
		})
	} else {
		err = p.Text(r, nil, code, damageLines(p, reports)...)
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	return exit(code)
}

// finish returns the results of the evidence.
func (cfg Config) finish(checker *evidence.Checker) (evidence.Report, error) {
	if cfg.Keep != nil {
		keys, err := cfg.Keep(checker.Unknown())
		if err != nil {
			return evidence.Report{}, err
		}
		checker.Trust(keys...)
	}
	return checker.Finish(), nil
}

// damageLines are the lines about damage.
func damageLines(p evidencereport.Printer, reports []*report) (lines [][]byte) {
	for _, r := range reports {
		if r == nil {
			continue
		}
		add := func(text string) {
			lines = append(lines, p.Line(evidencereport.Damaged, r.SessionID, text))
		}
		for _, d := range r.Problems {
			add(spool.Position{Segment: d.Segment, Offset: d.Offset}.Place() + " " + d.Text)
		}
		if r.NotShown > 0 {
			add(fmt.Sprintf("and %d more", r.NotShown))
		}
		if r.Unrecorded > 0 {
			lines = append(lines, p.Line("gap", r.SessionID, terminal.Count(int(r.Unrecorded), "call")+" not recorded at the time, see auditproxy log --kind gap"))
		}
	}
	return lines
}
