package risk

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

type commandVector struct {
	ID          string
	Command     string
	Destructive bool
	Class       string
	Why         string
}

func readVectors(t testing.TB) []commandVector {
	t.Helper()
	f, err := os.Open("testdata/commands.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []commandVector
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var v commandVector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// TestVectors requires every command of the sample to be judged right, which is
// more than the 95 % that must be found and the 5 % that may be flagged.
func TestVectors(t *testing.T) {
	found, destructive, flagged, benign := 0, 0, 0, 0
	c := &commandConfig{}
	for _, v := range readVectors(t) {
		d := detectCommand(v.Command, c)
		switch {
		case v.Destructive:
			if destructive++; d != 0 {
				found++
			} else {
				t.Errorf("%s missed: %q (%s)", v.ID, v.Command, v.Why)
			}
		default:
			if benign++; d != 0 {
				flagged++
				t.Errorf("%s flagged as %v: %q (%s)", v.ID, d.Words(), v.Command, v.Why)
			}
		}
	}
	t.Logf("found %d of %d destructive, flagged %d of %d benign", found, destructive, flagged, benign)
}

// readCases returns the cases of testdata/commands.txt.
func readCases(t testing.TB) []commandVector {
	t.Helper()
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	signs := strings.NewReplacer("⏎", "\n", "␍", "\r", "␀", "\x00")
	var out []commandVector
	for n, line := range strings.Split(string(text), "\n") {
		sign, command, _ := strings.Cut(line, " ")
		if sign == "+" || sign == "-" {
			out = append(out, commandVector{ID: strconv.Itoa(n + 1), Command: signs.Replace(command), Destructive: sign == "+"})
		}
	}
	return out
}

func TestCases(t *testing.T) {
	c := &commandConfig{}
	found, destructive, flagged, benign := 0, 0, 0, 0
	for _, v := range readCases(t) {
		d := detectCommand(v.Command, c)
		if v.Destructive {
			destructive++
			if d != 0 {
				found++
			} else {
				t.Errorf("commands.txt:%s: missed: %q", v.ID, v.Command)
			}
		} else {
			benign++
			if d != 0 {
				flagged++
				t.Errorf("commands.txt:%s: flagged as %v: %q", v.ID, d.Words(), v.Command)
			}
		}
	}
	t.Logf("found %d of %d destructive, flagged %d of %d benign", found, destructive, flagged, benign)
}
