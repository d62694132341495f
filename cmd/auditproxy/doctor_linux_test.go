package main

import (
	"io"
	"testing"

	"auditproxy/deploy/dev"
)

// TestDiagnosisOfDisk looks at disks with little room: for bytes, and for files only.
func TestDiagnosisOfDisk(t *testing.T) {
	for room, want := range map[string]string{
		"1m":                "disk_space_low",
		"1g,nr_inodes=1000": "inodes_low",
		"1g,nr_inodes=2000": "",
		"1g,nr_inodes=0":    "", // without a limit
	} {
		t.Run(room, func(t *testing.T) {
			dir := t.TempDir()
			dev.SmallDisk(t, dir, room)
			d := new(diagnosis)
			d.spool(config{spoolDir: dir, consumer: "none"}, io.Discard)
			if got := append(d.Problems, finding{})[0].Code; got != want {
				t.Errorf("found %+v, want %q", d.Problems, want)
			}
		})
	}
}
