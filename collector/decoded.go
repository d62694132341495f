package collector

import "auditproxy/collector/ingest"

// A decoded holds the results of decoding messages.
type decoded struct {
	rows    []ingest.Row
	letters []ingest.DeadLetter
	gaps    []ingest.Gap
	bytes   int64 // of memory
}

// add decodes m.
func (r *decoded) add(d *ingest.Decoder, m ingest.Message) {
	r.rows = append(r.rows, ingest.Row{})
	row := &r.rows[len(r.rows)-1]
	if letter := d.Decode(row, m); letter != nil {
		r.rows = r.rows[:len(r.rows)-1]
		r.letter(*letter)
		return
	}
	r.bytes += row.Size()
}

func (r *decoded) letter(l ingest.DeadLetter) {
	r.letters = append(r.letters, l)
	r.bytes += int64(len(l.Raw)+len(l.Key)) + 256
}

func (r *decoded) len() int { return len(r.rows) + len(r.letters) + len(r.gaps) }
