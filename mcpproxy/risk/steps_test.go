package risk

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// hostileKeys are repeated to make commands in which each byte may make a rule look at
// others, one for each way to do so.
var hostileKeys = []string{
	"a ", "rm\n", "rm;", "(", "$(", "{ ", "if ", "cat <<a\n", "`", "$((", "${a[", "${a:-", "f(){ ", "{1..9}", "\\r\\m ", "eval ", "sh -c '", "\"$(", "[[ ", "for i in a b; do ", "echo rm | sh;", "a=$a$a;",
	"\x01a\x05", "a\x15\x19", "\x01\x05", "\x0b\x19", "\x1b[D", "\x02", "\x17", "é\x02", "Home ", "\x1bb\x1bf", "a\r\x10", "\x14\x02", "a\x1b:", "a \x17\x17",
	"{", ",{", "{a,b}", "{x}", "{1..2}", "{\"\",", "rm {a,{b,c}}",
	"tmux set-hook a set-hook b ", "cmd /c a&", "zellij run run ", "x+=y\tx+=y/* ", "*?*r*m*;", "alias a=b;", "bind;", "let x<<'a'\n$((",
}

// hostileLists are texts in front of a list of arguments, of which each may make a rule
// look at all others.
var hostileLists = []string{
	"aws x ", "gem ", "tee ", "tar x", "curl ", "git ", "kubectl ", "docker ", "tmux ", "find / ", "xargs ", "sudo ", "psql -c '", "python3 -c '", "node -e '", "perl -e '", "pwsh -c '", "redis-cli ", "ssh h ", "zellij ", "cmd /c 'set x=a& ",
}

// hostileArguments are arguments of a call, in three parts. The test repeats the second.
var hostileArguments = [][3]string{
	{`{"a":`, "[", ""}, {"", `{"a":`, ""}, {`{`, `"_a":1,`, `"b":1}`}, {`{"paths":[`, `"/etc/x",`, `""]}`}, {`{"title":"`, "#(", `)"}`},
	{`{"operations":[`, `{"tool":"a"},`, `{}]}`}, {``, `{"operations":[{"tool":"a","arguments":`, ``},
	{strings.Repeat(`{"operations":[{"tool":"a"},`, 100), `{"tool":"a"},`, `{}` + strings.Repeat(`]}`, 100)},
	{`{"operations":[`, `{"tool":"send_keys","keys":"{","enter":false},`, `{}]}`}, {`{"operations":[`, `{"tool":"send_keys","keys":"\u0001a\u0005","enter":false},`, `{}]}`},
	{strings.Repeat(severalTools, 4), `"/etc/x",`, `0` + strings.Repeat(`]}]}`, 4)},
	{`{"command":` + strings.Repeat(`["a","b",`, 100), `"a",`, `0` + strings.Repeat(`]`, 100) + `}`},
	{strings.Repeat(`{"command":"rm","cmd":"rm","args":["a",`, 50), `0,`, `0` + strings.Repeat(`]}`, 50)},
	{`{"volumes":[`, `"/:/a",`, `""]}`}, {`{"manifest":"`, `hostPath:\n path: /\n`, `"}`}, {`{"params":"`, `[`, `"}`},
	{`{"command":"rm","cmd":"git","shell":"sh","args":["x"],"args":["y"],"args":[`, `"-c",`, `"a"]}`},
}

// hostileDefinitions are definitions of a tool, in the same way.
var hostileDefinitions = [][3]string{
	{`{"inputSchema":{"$ref":"#/a","a":{`, `"$ref":"#/a",`, `"b":1}}}`}, {`{"inputSchema":{"allOf":[`, `{"$ref":"#/allOf"},`, `{}]}}`}, {`{"inputSchema":`, `{"allOf":[`, ``},
	{`{"inputSchema":{"properties":{`, `"a":{"description":"shell command"},`, `"b":1}}}`}, {`{"inputSchema":{"required":[`, `"a",`, `"b"]}}`}, {`{"description":"`, "delete the or ", `"}`},
	{`{"_meta":{"fastmcp":{"tags":[`, `"x",`, `""]}}}`}, {`{"inputSchema":{"$ref":"#`, "/a", `","a":{}}}`},
}

const severalTools = `{"operations":[{"tool":"a","tool":"b","tool":"c","tool":"d","arguments":{"paths":[0]},"b":[`

// hostileJSON returns one of the definitions, or one of the others as the arguments of a
// call.
func hostileJSON(n, size int) []byte {
	whole := append(hostileDefinitions, hostileArguments...)
	if n < len(whole) {
		a := whole[n]
		return []byte(a[0] + strings.Repeat(a[1], max(size-len(a[0])-len(a[2]), 0)/len(a[1])) + a[2])
	}
	text, unit := "rm x;", "x " // the first has what a rule could see
	if n -= len(whole); n < len(hostileKeys) {
		unit = hostileKeys[n]
	} else {
		text += hostileLists[n-len(hostileKeys)]
	}
	b, _ := json.Marshal(map[string]string{"keys": text + strings.Repeat(unit, size/len(unit))})
	return b
}

// TestStepsAreLinear counts the blocks of statements that arguments make the assessor
// run, as the coverage tool counts them: hostile ones of twice the length need about
// twice as many, or fewer, where the budget ends. Time is less exact, and depends on the
// machine. What package slices copies counts too, what append does not.
func TestStepsAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs this package once for each text")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "steps.test")
	if out, err := exec.Command("go", "test", "-c", "-covermode=count", "-coverpkg=./...,auditproxy/schemas/jsontext,mvdan.cc/sh/v3/syntax,slices", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	count := func(n, size int) int {
		profile := filepath.Join(dir, fmt.Sprint(n, "-", size))
		c := exec.Command(program, "-test.run=^TestSteps$", "-test.coverprofile="+profile)
		c.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("RISK_STEPS=%d %d", n, size))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
			return 0
		}
		f, err := os.Open(profile)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer f.Close()
		sum := 0
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if line := lines.Text(); !strings.HasPrefix(line, "mode:") {
				times, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
				if err != nil {
					t.Error(err)
				}
				sum += times
			}
		}
		return sum
	}
	none := count(-1, 0) // the cost of starting
	var wg sync.WaitGroup
	running := make(chan struct{}, 2)
	for n := range len(hostileDefinitions) + len(hostileArguments) + len(hostileKeys) + len(hostileLists) {
		running <- struct{}{}
		wg.Go(func() {
			defer func() { <-running }()
			size := 8 << 10 // twice that has not too many words
			if n < len(hostileDefinitions)+len(hostileArguments) {
				size = 16 << 10
			}
			once, twice := count(n, size)-none, count(n, 2*size)-none
			what := hostileJSON(n, size)
			if 4*twice > 9*once {
				t.Errorf("%.60s: %d steps for %d bytes, %d for %d", what, once, size, twice, 2*size)
			}
			if perByte := once / size; perByte > maxStepsPerByte {
				t.Errorf("%.60s: %d steps a byte", what, perByte)
			}
		})
	}
	wg.Wait()
}

// maxStepsPerByte limits the blocks of statements run for a byte of hostile arguments.
const maxStepsPerByte = 400

// TestSteps assesses the arguments, or compiles the definition, for TestStepsAreLinear.
func TestSteps(t *testing.T) {
	var n, size int
	if got, _ := fmt.Sscan(os.Getenv("RISK_STEPS"), &n, &size); got < 2 {
		t.Skip("runs in TestStepsAreLinear")
	}
	a := newAssessor(t, Config{Home: "/home/u", Cwd: "/home/u/x"})
	tool := sendKeys(a)
	switch {
	case n < 0:
	case n < len(hostileDefinitions):
		a.Tool("x", hostileJSON(n, size))
	default:
		a.Assess(tool, hostileJSON(n, size), nil)
	}
}
