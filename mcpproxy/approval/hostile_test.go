package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// put writes a file in a directory, with a mode that the umask does not change.
func put(t *testing.T, d *Dir, name, text string, mode fs.FileMode) {
	t.Helper()
	file := filepath.Join(d.Path(), name)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	must(t, os.Chmod(file, mode))
}

// shared opens a directory that its group may write to.
func shared(t *testing.T) *Dir {
	t.Helper()
	dir := t.TempDir()
	must(t, unix.Chmod(dir, 0o3770))
	d, err := Open(Config{Dir: dir, SameUser: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const yes = `{"approved":true}`

// An answer counts at once, is rejected at once, or is given time to be written.
func TestAnswerFiles(t *testing.T) {
	text := func(s string) func(*testing.T, *Dir) {
		return func(t *testing.T, d *Dir) { put(t, d, "q.answer", s, 0o600) }
	}
	const late = "late" // it may be good a moment later
	for _, tt := range []struct {
		name string
		make func(*testing.T, *Dir)
		want string // "" if it counts; else a part of why it does not
		when string
	}{
		{"yes", text(yes), "", ""},
		{"with blanks", text(" \n{ \"approved\" : true }\n\n"), "", ""},
		{"of the group", func(t *testing.T, d *Dir) { put(t, d, "q.answer", yes, 0o640) }, "", ""},
		{"all members", text(`{"scope":"session","by":"Ann Ödin 你好","approved":false}`), "", ""},
		{"nothing", text(""), "it is empty", late},
		{"a part", text(`{"approved":tr`), "it is not strict JSON", late},
		{"two values", text(yes + yes), "it is not strict JSON", late},
		{"a comment", text(yes + " // yes"), "it is not strict JSON", late},
		{"NUL", text(yes + "\x00"), "it is not strict JSON", late},
		{"a mark of byte order", text("\ufeff" + yes), "it is not strict JSON", late},
		{"not UTF-8", text(`{"approved":true,"by":"` + "\xff" + `"}`), "", late},
		{"a list", text(`[true]`), "it is not an object", ""},
		{"a word", text(`true`), "it is not an object", ""},
		{"no members", text(`{}`), `no member "approved"`, ""},
		{"only a scope", text(`{"scope":"once"}`), `no member "approved"`, ""},
		{"a number", text(`{"approved":1}`), "approved is not true or false", ""},
		{"a string", text(`{"approved":"true"}`), "approved is not true or false", ""},
		{"null", text(`{"approved":null}`), "approved is not true or false", ""},
		{"twice", text(`{"approved":false,"approved":true}`), "a member is there twice", ""},
		{"twice the same", text(`{"approved":true,"approved":true}`), "a member is there twice", ""},
		{"by twice", text(`{"by":"a","approved":true,"by":"b"}`), "a member is there twice", ""},
		{"another case", text(`{"Approved":true}`), "unknown member", ""},
		{"escaped", text(`{"\u0061pproved":true}`), "unknown member", ""},
		{"escaped twice", text(`{"approved":false,"appro\u0076ed":true}`), "unknown member", ""},
		{"unknown", text(`{"approved":true,"user":"root"}`), "unknown member", ""},
		{"unknown first", text(`{"user":"root","approved":true}`), "unknown member", ""},
		{"of an entry", text(`{"approved":true,"tool":"send_keys"}`), "unknown member", ""},
		{"of an entry's server", text(`{"approved":true,"server_key":"0123456789abcdef"}`), "unknown member", ""},
		{"of an entry's detections", text(`{"approved":true,"detections":["opaque"]}`), "unknown member", ""},
		{"of an entry's level", text(`{"approved":true,"level":"critical"}`), "unknown member", ""},
		{"unknown scope", text(`{"approved":true,"scope":"forever"}`), "scope is not", ""},
		{"a scope in capitals", text(`{"approved":true,"scope":"ALWAYS"}`), "scope is not", ""},
		{"an empty scope", text(`{"approved":true,"scope":""}`), "scope is not", ""},
		{"null as scope", text(`{"approved":true,"scope":null}`), "scope is not a string", ""},
		{"a number as name", text(`{"approved":true,"by":7}`), "by is not a string", ""},
		{"escape sequence", text(`{"approved":true,"by":"\u001b[2J"}`), "by has a control character", ""},
		{"line feed", text(`{"approved":true,"by":"Ann\nroot"}`), "by has a control character", ""},
		{"C1", text(`{"approved":true,"by":"\u009b2J"}`), "by has a control character", ""},
		{"right to left", text(`{"approved":true,"by":"\u202enna"}`), "by has a control character", ""},
		{"half a pair", text(`{"approved":true,"by":"\ud800"}`), "by has a control character", ""},
		{"a long name", text(`{"approved":true,"by":"` + strings.Repeat("ä", 257) + `"}`), "by has more than 256", ""},
		{"the longest name", text(`{"approved":true,"by":"` + strings.Repeat("ä", 256) + `"}`), "", ""},
		{"large", text(yes + strings.Repeat(" ", 4096)), "it has more than 4096 bytes", ""},
		{"the largest", text(yes + strings.Repeat(" ", 4096-len(yes))), "", ""},
		{"deep", text(strings.Repeat("[", 3000)), "it is not strict JSON", late},
		{"of another question", text(`{"approved":true,"question":"` + strings.Repeat("0", 64) + `"}`), "it answers another question", ""},
		{"of no question", text(`{"approved":true,"question":""}`), "", ""},
		{"sparse", func(t *testing.T, d *Dir) {
			put(t, d, "q.answer", "", 0o600)
			must(t, os.Truncate(filepath.Join(d.Path(), "q.answer"), 1<<40))
		}, "it has more than 4096 bytes", ""},
		{"a link", func(t *testing.T, d *Dir) {
			put(t, d, "elsewhere", yes, 0o600)
			must(t, os.Symlink("elsewhere", filepath.Join(d.Path(), "q.answer")))
		}, "it is not a regular file", ""},
		{"a link to nothing", func(t *testing.T, d *Dir) {
			must(t, os.Symlink("/nowhere", filepath.Join(d.Path(), "q.answer")))
		}, "it is not a regular file", ""},
		{"two names", func(t *testing.T, d *Dir) {
			put(t, d, "elsewhere", yes, 0o600)
			must(t, os.Link(filepath.Join(d.Path(), "elsewhere"), filepath.Join(d.Path(), "q.answer")))
		}, "it has 2 names", late},
		{"a FIFO", func(t *testing.T, d *Dir) {
			must(t, syscall.Mkfifo(filepath.Join(d.Path(), "q.answer"), 0o600))
		}, "it is not a regular file", ""},
		{"a socket", func(t *testing.T, d *Dir) {
			must(t, unix.Mknod(filepath.Join(d.Path(), "q.answer"), unix.S_IFSOCK|0o600, 0))
		}, "it is not a regular file", ""},
		{"a directory", func(t *testing.T, d *Dir) {
			must(t, os.Mkdir(filepath.Join(d.Path(), "q.answer"), 0o700))
		}, "it is not a regular file", ""},
		{"of a group that may write", func(t *testing.T, d *Dir) { put(t, d, "q.answer", yes, 0o660) }, "its mode 0660 lets others change it", ""},
		{"of all", func(t *testing.T, d *Dir) { put(t, d, "q.answer", yes, 0o606) }, "its mode 0606 lets others change it", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := shared(t)
				must(t, d.Ask(question("q")))
				tt.make(t, d)
				a, err := d.Answer("q")
				if tt.name == "not UTF-8" { // text that is not UTF-8 is not strict JSON, or has U+FFFD
					if a != nil {
						t.Errorf("it counts: %+v", a)
					}
					return
				}
				if tt.want == "" {
					if err != nil || a == nil || a.User == "" {
						t.Errorf("it does not count: %+v, %v", a, err)
					}
					return
				}
				if tt.when == late {
					if a != nil || err != nil {
						t.Fatalf("at once: %+v, %v, want that it may still be written", a, err)
					}
					<-time.After(unfinished)
					a, err = d.Answer("q")
				}
				var rejected *Rejected
				if a != nil || !errors.As(err, &rejected) || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("answer: %+v, %v, want one with %q", a, err, tt.want)
				}
				if filepath.Base(rejected.Kept) != "q.rejected-1" {
					t.Errorf("kept as %q", rejected.Kept)
				}
				if a, err := d.Answer("q"); a != nil || err != nil {
					t.Errorf("once more: %+v, %v", a, err)
				}
				put(t, d, "q.answer", yes, 0o600)
				if a, err := d.Answer("q"); a == nil || err != nil {
					t.Errorf("a good answer after it: %+v, %v", a, err)
				}
			})
		})
	}
}

// An answer that is written slowly counts when it is whole.
func TestAnswerThatIsStillWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := shared(t)
		must(t, d.Ask(question("q")))
		for i := range len(yes) {
			put(t, d, "q.answer", yes[:i], 0o600)
			if a, err := d.Answer("q"); a != nil || err != nil {
				t.Fatalf("%q: %+v, %v", yes[:i], a, err)
			}
			<-time.After(unfinished / 20)
		}
		put(t, d, "q.answer", yes, 0o600)
		if a, err := d.Answer("q"); a == nil || err != nil {
			t.Errorf("whole: %+v, %v", a, err)
		}
	})
}

// Rejected answers do not overwrite each other, and many are not kept.
func TestManyRejectedAnswers(t *testing.T) {
	d := shared(t)
	must(t, d.Ask(question("q")))
	for n := range maxRejected {
		put(t, d, "q.answer", `{"approved":1}`, 0o600)
		var rejected *Rejected
		if _, err := d.Answer("q"); !errors.As(err, &rejected) || filepath.Base(rejected.Kept) != fmt.Sprintf("q.rejected-%d", n+1) {
			t.Fatalf("answer %d: %v", n, err)
		}
	}
	put(t, d, "q.answer", `{"approved":1}`, 0o600)
	var rejected *Rejected
	if _, err := d.Answer("q"); !errors.As(err, &rejected) || rejected.Kept != "" {
		t.Errorf("the last: %v", err)
	}
	if a, err := d.Answer("q"); a != nil || err != nil {
		t.Errorf("it is told twice: %+v, %v", a, err)
	}
	put(t, d, "q.answer", `{"approved":12}`, 0o600)
	if _, err := d.Answer("q"); !errors.As(err, &rejected) {
		t.Errorf("another one in its place: %v", err)
	}
	// Its owner can still correct it.
	put(t, d, "q.answer", yes, 0o600)
	if a, err := d.Answer("q"); a == nil || err != nil {
		t.Errorf("corrected: %+v, %v", a, err)
	}
}

func TestIDsWithPathCharacters(t *testing.T) {
	d := own(t)
	for _, id := range []string{"", ".", "..", "../x", "a/b", "a.b", `a\b`, "a b", "a\x00", "a\n", "ä", "-/", "%2e", "always/x", strings.Repeat("a", 65)} {
		if validID(id) {
			t.Errorf("%q is valid", id)
		}
		q := question("q")
		q.ID = id
		if err := d.Ask(q); err == nil {
			t.Errorf("%q is asked", id)
		}
		if err := d.Withdraw(id); err == nil {
			t.Errorf("%q is withdrawn", id)
		}
		if _, err := d.Answer(id); err == nil {
			t.Errorf("%q is answered", id)
		}
		if err := d.Give(q, Answer{Approved: true}); err == nil {
			t.Errorf("%q takes an answer", id)
		}
	}
	if list, err := names(d.Path()); err != nil || len(list) > 0 {
		t.Errorf("they left %q, %v", list, err)
	}
	for _, id := range []string{"-", "_", "-rf", "--help", "AZaz09", strings.Repeat("Z", 64)} {
		if !validID(id) {
			t.Errorf("%q is not valid", id)
		}
	}
	// A server's key is a part of a name too.
	for _, c := range []byte("09af") {
		if key := strings.Repeat(string(c), 16); !validKey(key) || validKey(key[1:]) || validKey(key+"0") {
			t.Errorf("of %q, 15, 16 and 17 digits are valid: %t, %t, %t", c, validKey(key[1:]), validKey(key), validKey(key+"0"))
		}
	}
	for _, c := range []byte("/:`gAF.") {
		if key := "012345678abcdef" + string(c); validKey(key) {
			t.Errorf("%q is a server's key", key)
		}
	}
}

// Of two simultaneous answers one counts, and the other person learns whose.
func TestSimultaneousAnswers(t *testing.T) {
	d := own(t)
	for round := range 50 {
		id := fmt.Sprint("q", round)
		must(t, d.Ask(question(id)))
		list, err := d.Waiting()
		if err != nil || len(list) != 1 {
			t.Fatalf("waiting: %v, %v", list, err)
		}
		people := []string{"Ann", "Bob", "Cem"}
		errs := make([]error, len(people))
		var wg sync.WaitGroup
		for i, by := range people {
			wg.Go(func() {
				other, err := Open(Config{Dir: d.Path(), People: true})
				if err == nil {
					err = other.Give(&list[0], Answer{Approved: true, By: by})
				}
				errs[i] = err
			})
		}
		wg.Wait()
		a, err := d.Answer(id)
		if err != nil || a == nil {
			t.Fatalf("answer: %+v, %v", a, err)
		}
		for i, by := range people {
			var answered *Answered
			if by == a.By && errs[i] != nil || by != a.By && (!errors.As(errs[i], &answered) || answered.By != a.By) {
				t.Errorf("round %d: %s answered, %s got %v", round, a.By, by, errs[i])
			}
		}
		must(t, d.Withdraw(id))
	}
}

// A question is new, has no answer yet, and is of bounded size.
func TestAskRefuses(t *testing.T) {
	d := own(t)
	must(t, d.Ask(question("q")))
	if err := d.Ask(question("q")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same id again: %v", err)
	}
	put(t, d, "early.answer", yes, 0o600)
	if err := d.Ask(question("early")); err == nil || !strings.Contains(err.Error(), "it has an answer already") {
		t.Errorf("an answer before the question: %v", err)
	}
	large := question("large")
	large.Calls[0].Args = audit.JSON(`"` + strings.Repeat("a", maxQuestion) + `"`)
	if err := d.Ask(large); err == nil {
		t.Error("a question that is too large is asked")
	}
	large.Calls[0].Args = "{"
	if err := d.Ask(large); err == nil {
		t.Error("a question that is not JSON is asked")
	}
	many := question("many")
	many.Calls[0].Args = audit.JSON(`"` + strings.Repeat("a", maxQuestion/5) + `"`)
	many.Calls = slices.Repeat(many.Calls, 40)
	many.More = 2
	must(t, d.Ask(many))
	q, err := d.question("many")
	if err != nil || len(q.Calls) != 4 || q.More != 38 {
		t.Errorf("42 large calls: %d shown, %d more, %v", len(q.Calls), q.More, err)
	}
	if err := d.Give(q, Answer{Approved: true, Scope: Always}); err == nil || !strings.Contains(err.Error(), "leaves out 38") {
		t.Errorf("calls that are not shown are always allowed: %v", err)
	}
	most := question("most")
	most.Calls = slices.Repeat(most.Calls, MaxCalls+2)
	must(t, d.Ask(most))
	if q, err := d.question("most"); err != nil || len(q.Calls) != MaxCalls || q.More != 2 {
		t.Errorf("%d small calls: %+v, %v", MaxCalls+2, q, err)
	}
}

// TestGiveRefuses: an answer that its proxy would not take, or that is for longer than its
// person can see, is not written.
func TestGiveRefuses(t *testing.T) {
	d := own(t)
	for _, tt := range []struct {
		name   string
		ask    func(*Question)
		change func(*Question) // as the person's program has it
		answer Answer
		want   string
	}{
		{"a name with a line feed", nil, nil, Answer{By: "Ann\nroot"}, "control character"},
		{"changed since it was shown", nil, func(q *Question) { q.Digest = strings.Repeat("0", 64) }, Answer{}, "changed since it was shown"},
		{"of no server", func(q *Question) { q.ServerKey = "" }, nil, Answer{Scope: Always}, "does not name its server"},
		{"of no tool", func(q *Question) { q.Calls[0].Tool, q.Calls[0].Method = "", "" }, nil, Answer{Scope: Always}, "does not say what it is about"},
		{"with detections that are no list", func(q *Question) { q.Calls[0].Detections = "7" }, nil, Answer{Scope: Always}, "does not say what it is about"},
		{"of a tool with a long name", func(q *Question) {
			q.Calls = append(q.Calls, Call{Tool: strings.Repeat("x", maxAnswer)})
		}, nil, Answer{Scope: Always}, "too long to be always allowed"},
	} {
		q := question("q")
		if tt.ask != nil {
			tt.ask(q)
		}
		must(t, d.Ask(q))
		list, err := d.Waiting()
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: waiting: %v, %v", tt.name, list, err)
		}
		if tt.change != nil {
			tt.change(&list[0])
		}
		tt.answer.Approved = true
		if err := d.Give(&list[0], tt.answer); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if a, err := d.Answer("q"); a != nil || err != nil {
			t.Errorf("%s: answered: %+v, %v", tt.name, a, err)
		}
		must(t, d.Withdraw("q"))
		if list, err := names(d.alwaysDir()); len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: left as entries: %q, %v", tt.name, list, err)
		}
	}
}

// A question is what was asked, for people.
func TestQuestionRoundTrip(t *testing.T) {
	d := own(t)
	q := question("q")
	q.Calls[0].Operations, q.Calls[0].MoreOperations = []string{"send_keys", "\x1b[2J"}, 3
	q.Calls[0].Target, q.Client = "\x1b[2J\u202e<b>", strings.Repeat("x", 300)
	must(t, d.Ask(q))
	list, err := d.Waiting()
	if err != nil || len(list) != 1 {
		t.Fatalf("waiting: %v, %v", list, err)
	}
	got := list[0]
	if got.Digest == "" || got.Owner != userName(os.Geteuid()) || !got.SameUser || !got.held || got.Abandoned {
		t.Errorf("question: %+v", got)
	}
	got.Digest, got.Owner, got.SameUser, got.held, got.uid, got.size = "", "", false, false, 0, 0
	if diff := cmp.Diff(*q, got, cmp.AllowUnexported(Question{})); diff != "" {
		t.Errorf("question (-asked +read):\n%s", diff)
	}
}

// Questions that cannot be read are told about, and hide no other.
func TestHostileQuestions(t *testing.T) {
	d := own(t)
	for i, id := range []string{"second", "first"} {
		q := question(id)
		q.Asked = q.Asked.Add(-time.Duration(i) * time.Minute)
		must(t, d.Ask(q))
	}
	anyServer := question("any")
	anyServer.ServerKey = ""
	anyServer.Asked = anyServer.Asked.Add(time.Minute)
	must(t, d.Ask(anyServer))
	over := question("over")
	over.Expires = time.Now().Add(-time.Second)
	must(t, d.Ask(over))
	good, err := os.ReadFile(filepath.Join(d.Path(), "first.json"))
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		"empty": "", "part": string(good[:len(good)/2]), "moved": string(good), "list": "[]", "word": "null", "nocalls": `{"id":"nocalls"}`,
		"types": `{"id":7}`, "deep": strings.Repeat("[", 1<<16), "huge": strings.Repeat(" ", maxQuestion+1),
		"calls": strings.Replace(string(good), `"calls":[`, `"calls":[`+strings.Repeat(`{"call_no":1},`, 20), 1),
		"key":   strings.Replace(string(good), "0123456789abcdef", "../../../../etc/", 1),
		"more":  strings.Replace(string(good), `"calls"`, `"more":-1,"calls"`, 1),
		"names": strings.Replace(string(good), `"calls"`, `"approvers":["root\nallowed once"],"calls"`, 1),
		"year":  regexp.MustCompile(`"expires":"[^"]*"`).ReplaceAllString(string(good), `"expires":"9999-12-31T23:59:59-23:59"`),
		"time":  strings.Replace(string(good), `"asked":"2`, `"asked":"x`, 1),
		"bytes": strings.Replace(string(good), `"user":"u`, "\"user\":\"\xff", 1),
		"none":  regexp.MustCompile(`"calls":\[.*\]`).ReplaceAllString(string(good), `"calls":[]`),
		"pid":   strings.Replace(string(good), `"pid":7`, `"pid":"7"`, 1),
		"late":  regexp.MustCompile(`"asked":"[^"]*"`).ReplaceAllString(string(good), `"asked":"9999-12-31T23:59:59-23:59"`),
		"unset": regexp.MustCompile(`"asked":"[^"]*",?`).ReplaceAllString(string(good), ""),
		"never": regexp.MustCompile(`"expires":"[^"]*",?`).ReplaceAllString(string(good), ""),
	}
	for id, text := range bad {
		put(t, d, id+".json", strings.Replace(text, `"id":"first"`, `"id":"`+id+`"`, map[bool]int{true: 0, false: 1}[id == "moved"]), 0o600)
	}
	for _, err := range []error{os.Symlink("first.json", filepath.Join(d.Path(), "link.json")), syscall.Mkfifo(filepath.Join(d.Path(), "fifo.json"), 0o600),
		os.Mkdir(filepath.Join(d.Path(), "dir.json"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, d, "\x1b[2J.json", string(good), 0o600)
	put(t, d, "..json", string(good), 0o600)
	list, err := d.Waiting()
	var ids []string
	for _, q := range list {
		ids = append(ids, q.ID)
	}
	if diff := cmp.Diff([]string{"first", "second", "any"}, ids); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if err == nil {
		t.Fatal("nothing is told about questions that cannot be read")
	}
	for id := range bad {
		if !strings.Contains(err.Error(), fmt.Sprintf("question %q: ", id)) {
			t.Errorf("the error does not name %s: %v", id, err)
		}
	}
	if n := strings.Count(err.Error(), "question \""); n != len(bad)+3 || strings.Contains(err.Error(), "rm -rf") {
		t.Errorf("%d questions cannot be read, want %d, without their text: %v", n, len(bad)+3, err)
	}
}

// Names of files that hold entries have no character of paths, and differ where
// the tools do.
func TestToolsAsNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	tools := []string{"a", "A", "a.b", "a/b", "..", "../../etc/passwd", "a\x00b", "a%2fb", "%", "~", "ä", "a~0", ".", "send_keys", "send-keys", strings.Repeat("x", 120), strings.Repeat("x", 121), strings.Repeat("x", 122), strings.Repeat("/", 41)}
	for range 2000 {
		b := make([]byte, 1+r.IntN(60))
		for i := range b {
			b[i] = "ab./%~\x00\\\xff_-"[r.IntN(11)]
		}
		tools = append(tools, string(b))
	}
	if most := strings.Repeat("x", maxEscaped); escapeTool(most) != most {
		t.Errorf("the longest name of a tool is escaped as %q", escapeTool(most))
	}
	for _, tool := range tools {
		name := escapeTool(tool)
		if strings.ContainsAny(name, "./\\\x00") || len(name) > maxEscaped || name == "" {
			t.Errorf("%q is escaped as %q", tool, name)
		}
		if other, ok := seen[name]; ok && other != tool {
			t.Errorf("%q and %q are both %q", tool, other, name)
		}
		seen[name] = tool
		if back, ok := unescapeTool(name); ok && back != tool {
			t.Errorf("%q is escaped as %q, which is %q", tool, name, back)
		} else if !ok && len(tool) < maxEscaped/3 {
			t.Errorf("%q cannot be read back from %q", tool, name)
		}
	}
}

// Entries of one tool: of several servers, with several sets of detections, of
// tools with any name.
func TestAlwaysEntries(t *testing.T) {
	d := own(t)
	risk := `{"category":"execute","level":"high"}`
	give := func(id, tool, key string, detectors ...string) {
		t.Helper()
		q := question(id)
		q.ServerKey, q.Calls[0].Tool, q.Calls[0].Detections, q.Calls[0].Risk = key, tool, "", audit.JSON(risk)
		var found []audit.Detection
		for _, word := range detectors {
			found = append(found, audit.Detection{Detector: word, At: "keys"})
		}
		q.Calls[0].Detections = audit.DetectionsJSON(found)
		must(t, d.Ask(q))
		must(t, d.Give(q, Answer{Approved: true, Scope: Always, By: "Ann"}))
		must(t, d.Withdraw(id))
	}
	const a, b = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	long := strings.Repeat("/", 200)
	give("q1", "send_keys", a)
	give("q2", "send_keys", b, "opaque")
	give("q3", "send_keys", a, "opaque", "shutdown", "opaque")
	give("q4", "send_keys", a, "shutdown") // covered
	give("q5", "../../x", a)
	give("q6", long, a)
	risk = `{"category":"destructive","level":"critical"}`
	give("q7", "send_keys", b)
	risk = "{}"
	give("q8", "quiet", a)
	for _, tt := range []struct {
		tool, key  string
		detections []string
		level      string
		want       bool
	}{
		{"send_keys", a, nil, "high", true},
		{"send_keys", a, nil, "low", true},
		{"send_keys", a, nil, "critical", false},
		{"send_keys", b, nil, "critical", true},
		{"send_keys", b, []string{"opaque"}, "critical", false},
		{"send_keys", "cccccccccccccccc", nil, "high", false},
		{"send_keys", a, []string{"shutdown"}, "high", true},
		{"send_keys", a, []string{"shutdown", "opaque"}, "high", true},
		{"send_keys", a, []string{"shutdown", "opaque", "recursive_delete"}, "high", false},
		{"send_keys", b, []string{"opaque"}, "high", true},
		{"send_keys", b, []string{"shutdown"}, "high", false},
		{"../../x", a, nil, "high", true},
		{long, a, nil, "high", true},
		{long + "/", a, nil, "high", false},
		{"quiet", a, nil, "low", true},
		{"quiet", a, nil, "medium", false},
		{"", a, nil, "high", false},
	} {
		got, err := d.Allows(tt.tool, tt.key, tt.detections, tt.level)
		if err != nil || (got != nil) != tt.want || got != nil && (got.By != "Ann" || got.User == "" || !got.Approved) {
			t.Errorf("%q of %s with %q, %s: %+v, %v, want %v", tt.tool, tt.key, tt.detections, tt.level, got, err, tt.want)
		}
		if one, err := d.Always(tt.tool, tt.key); err != nil || tt.want && one == nil {
			t.Errorf("Always(%q, %s) = %+v, %v", tt.tool, tt.key, one, err)
		}
	}
	put(t, d, "always/.new-x", yes, 0o600) // no entries
	put(t, d, "always/notes", yes, 0o600)
	list, err := d.Allowed()
	if err != nil || len(list) != 7 {
		t.Errorf("%d entries, want 7, %v: %+v", len(list), err, list)
	}
	for _, e := range list {
		if e.Err != nil || e.Since.IsZero() {
			t.Errorf("entry %+v", e)
		}
	}
	if err := d.Revoke("send_keys", a); err != nil {
		t.Error(err)
	}
	if got, _ := d.Allows("send_keys", a, nil, ""); got != nil {
		t.Errorf("revoked: %+v", got)
	}
	if got, _ := d.Allows("send_keys", b, nil, ""); got == nil {
		t.Error("the other server's entry is gone")
	}
	if err := d.Revoke(long, ""); err != nil {
		t.Error(err)
	}
	list, err = d.Allowed()
	var left []string
	for _, e := range list {
		left = append(left, e.Tool+" "+e.ServerKey)
	}
	if diff := cmp.Diff([]string{"../../x " + a, "quiet " + a, "send_keys " + b, "send_keys " + b}, left); diff != "" || err != nil {
		t.Errorf("left after two were revoked (-want +got):\n%s%v", diff, err)
	}
	if err := d.Revoke("send", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("revoking the first part of a name: %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(d.alwaysDir(), "dir.answer", "x"), 0o700))
	if err := d.Revoke("dir", ""); err == nil {
		t.Error("an entry that cannot be removed is revoked")
	}
	put(t, d, "always/hand.answer", `{"approved":true,"scope":"always"}`, 0o600)
	if got, err := d.Allows("hand", a, nil, "critical"); got == nil || err != nil {
		t.Errorf("an entry without a level: %+v, %v", got, err)
	}

	for _, bad := range []struct{ name, text, why string }{
		{"denies.answer", `{"approved":false}`, "does not approve"},
		{"once.answer", `{"approved":true,"scope":"once"}`, "scope is not always"},
		{"moved.answer", `{"approved":true,"tool":"other"}`, "its name is of another tool"},
		{"%61.answer", yes, "its name is of another tool"},
		{"x~y.answer", yes, "which tool"},
		{"key.answer", `{"approved":true,"server_key":"x"}`, "server_key is not"},
		{"words.answer", `{"approved":true,"detections":"all"}`, "detections is not a list"},
		{"number.answer", `{"approved":true,"detections":[1]}`, "detections is not a string"},
		{"mixed.answer", `{"approved":true,"detections":[1,"opaque"]}`, "detections is not a string"},
		{"level.answer", `{"approved":true,"scope":"always","level":"extreme"}`, "level is not"},
		{"nolevel.answer", `{"approved":true,"scope":"always","level":""}`, "level is not"},
		{"unknown.answer", `{"approved":true,"scope":"always","user":"high"}`, "unknown member"},
		{"%.answer", `{"approved":true,"scope":"always"}`, "which tool"},
		{"a%zz.answer", `{"approved":true,"scope":"always"}`, "which tool"},
		{"part.answer", `{"approved"`, "strict JSON"},
		{"short.answer", `{"approved":true}`, "scope is not always"}, // as an answer to one question is written by hand
		{"answer.answer", `{"approved":true,"scope":"always","question":"` + strings.Repeat("0a", 32) + `"}`, "it answers one question"},
	} {
		put(t, d, "always/"+bad.name, bad.text, 0o600)
		list, _ := d.Allowed()
		i := slices.IndexFunc(list, func(e AlwaysEntry) bool { return e.File == bad.name })
		if i < 0 || list[i].Err == nil || !strings.Contains(list[i].Err.Error(), bad.why) {
			t.Errorf("%s: %+v", bad.name, list)
		}
		if got, err := d.Allows(strings.TrimSuffix(bad.name, ".answer"), a, nil, ""); got != nil {
			t.Errorf("%s allows %+v, %v", bad.name, got, err)
		}
	}
}

// Directories in which others could move answers are refused, with a remedy.
func TestDirectoryChecks(t *testing.T) {
	top := t.TempDir()
	dir := func(name string, mode uint32) string {
		file := filepath.Join(top, name)
		must(t, errors.Join(os.Mkdir(file, 0o700), unix.Chmod(file, mode)))
		return file
	}
	link := filepath.Join(top, "link")
	must(t, os.Symlink(dir("target", 0o700), link))
	file := filepath.Join(top, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"own", Config{Dir: filepath.Join(top, "new", "approvals"), Own: true}, ""},
		{"own of others", Config{Dir: dir("lax", 0o750), Own: true}, "run chmod 700"},
		{"a user's", Config{Dir: dir("private", 0o700)}, ""},
		{"shared", Config{Dir: dir("shared", 0o3770)}, ""},
		{"for reading", Config{Dir: dir("reading", 0o750)}, ""},
		{"without the sticky bit", Config{Dir: dir("group", 0o2770)}, "run chmod 3770"},
		{"everyone's", Config{Dir: dir("all", 0o777)}, "run chmod 3770"},
		{"everyone's, sticky", Config{Dir: dir("tmp", 0o1777)}, "run chmod 3770"},
		{"a link", Config{Dir: link}, "symbolic link"},
		{"a file", Config{Dir: file}, "it is not a directory"},
		{"missing", Config{Dir: filepath.Join(top, "missing")}, "install -d -m 3770 -g GROUP"},
		{"relative", Config{Dir: "approvals"}, "not an absolute path"},
		{"empty", Config{}, "not an absolute path"},
		{"approvers that are not names", Config{Dir: dir("names", 0o700), Approvers: []string{"0", "a\nb"}}, "approver 2 is not the name"},
		{"too many approvers", Config{Dir: dir("many", 0o700), Approvers: slices.Repeat([]string{"0"}, 257)}, "use a group"},
		{"many approvers", Config{Dir: dir("most", 0o700), Approvers: slices.Repeat([]string{"0"}, 256)}, ""},
		{"an approver without a name", Config{Dir: dir("noname", 0o700), Approvers: []string{""}}, "approver 1 is not the name"},
		{"an approver with a blank", Config{Dir: dir("blank", 0o700), Approvers: []string{"a b"}}, "approver 1 is not the name"},
		{"an approver that is not UTF-8", Config{Dir: dir("bytes", 0o700), Approvers: []string{"a\xff"}}, "approver 1 is not the name"},
		{"an approver with the longest name", Config{Dir: dir("longest", 0o700), Approvers: []string{strings.Repeat("0", 256)}}, ""},
		{"an approver with a long name", Config{Dir: dir("long", 0o700), Approvers: []string{strings.Repeat("0", 257)}}, "approver 1 is not the name"},
		{"unknown approvers", Config{Dir: dir("approvers", 0o700), Approvers: []string{"nosuchuser", "%nosuchgroup", "4294967295", "0"}}, `approver "nosuchuser": there is no such user`},
	} {
		tt.cfg.SameUser = true
		_, err := Open(tt.cfg)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if tt.name == "unknown approvers" && err != nil && strings.Count(err.Error(), "approver \"") != 3 {
			t.Errorf("%s: %v, want all three", tt.name, err)
		}
	}
}

// TestDirectoriesOfOthers: an own directory is this user's, and root's may be for the answers of
// others, also where root runs the agent.
func TestDirectoriesOfOthers(t *testing.T) {
	dev.Superuser(t)
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	if _, err := Open(Config{Dir: dir, Approvers: []string{"99"}}); err != nil {
		t.Errorf("root's for another user: %v", err)
	}
	must(t, os.Chown(dir, 99, -1))
	_, err := Open(Config{Dir: dir, Own: true, Approvers: []string{"99"}})
	if err == nil || !strings.Contains(err.Error(), "it belongs to") {
		t.Errorf("an own directory of another user: %v", err)
	}
}

// Whose answers count, by rule.
func TestRules(t *testing.T) {
	const me = 2000001234 // who has no name
	entry, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := strconv.Atoi(entry.Uid) // who is in no such group
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		approvers []string
		same      bool
		proxy     int
		yes, no   []int
		text      string
	}{
		{nil, true, me, []int{me, 0}, []int{99}, "2000001234, root may answer"},
		{nil, false, me, []int{0}, []int{me, 99}, "root may answer, but not 2000001234"},
		{nil, false, 0, nil, []int{0, me}, "nobody may answer, but not root"},
		{[]string{"99"}, true, me, []int{99, 0}, []int{me}, "99, root may answer"},
		{[]string{"99", "2000001234"}, true, me, []int{99, 0, me}, []int{98}, "99, 2000001234, root may answer"},
		{[]string{"99", "2000001234"}, false, me, []int{99, 0}, []int{me}, "99, root may answer, but not 2000001234"},
		{[]string{"0", "99"}, false, 0, []int{99}, []int{0}, "99 may answer, but not root"},
		{[]string{"99"}, true, 0, []int{99}, []int{0}, "99 may answer"}, // root runs the agent
		{[]string{"0"}, true, 0, []int{0}, []int{99}, "0 may answer"},
		{nil, true, 0, []int{0}, []int{99}, "root may answer"},
		{[]string{"root"}, true, me, []int{0}, []int{me, 99}, "root may answer"},
		{[]string{"%root"}, true, me, []int{0}, []int{me, 99}, "members of root, root may answer"},
		{[]string{"%2000001234"}, true, me, []int{0}, []int{me, nobody}, "members of 2000001234, root may answer"},
	} {
		r, err := newRule(tt.approvers, tt.same)
		if err != nil {
			t.Fatal(err)
		}
		for _, uid := range tt.yes {
			if err := r.allows(uid, tt.proxy); err != nil {
				t.Errorf("%q, same user %v, proxy %d: user %d: %v", tt.approvers, tt.same, tt.proxy, uid, err)
			}
		}
		for _, uid := range tt.no {
			if r.allows(uid, tt.proxy) == nil {
				t.Errorf("%q, same user %v, proxy %d: user %d counts", tt.approvers, tt.same, tt.proxy, uid)
			}
		}
		if text := r.describe(tt.proxy); text != tt.text {
			t.Errorf("%q, same user %v, proxy %d: described as %q, want %q", tt.approvers, tt.same, tt.proxy, text, tt.text)
		}
	}
	// Names that only the proxy's machine knows: nobody here counts for certain.
	var not *NotAllowed
	if err := (&Question{Approvers: []string{"nosuchuser"}, uid: me}).Allows(0); !errors.As(err, &not) {
		t.Errorf("with an approver that is unknown here: %v, want %T", err, not)
	}
}

// An answer that came too late is set aside, so that its person learns that it
// did not count.
func TestLateAnswer(t *testing.T) {
	d := own(t)
	q := question("q")
	must(t, d.Ask(q))
	must(t, d.Give(q, Answer{Approved: true}))
	must(t, d.Withdraw("q"))
	list, err := names(d.Path())
	if err != nil || !slices.Equal(list, []string{"q.rejected-1"}) || d.Rejections(q) != 1 {
		t.Errorf("after the question was withdrawn: %q, %v", list, err)
	}
	var gone *Gone
	if err := d.Give(q, Answer{Approved: true}); !errors.As(err, &gone) {
		t.Errorf("answered after its end: %v", err)
	}
	// A question without an answer leaves nothing, also where its file is gone.
	for _, id := range []string{"silent", "removed"} {
		must(t, d.Ask(question(id)))
		file := d.asked[id].file
		if id == "removed" {
			must(t, os.Remove(d.name(id, questionExt)))
		}
		if err := d.Withdraw(id); err != nil {
			t.Error(err)
		}
		if err := file.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the file of question %q stays open: %v", id, err)
		}
	}
	if list, err := names(d.Path()); err != nil || len(list) != 1 {
		t.Errorf("questions without answers left %q, %v", list, err)
	}
	must(t, d.Ask(question("stuck")))
	must(t, os.Remove(d.name("stuck", questionExt)))
	must(t, os.MkdirAll(filepath.Join(d.name("stuck", questionExt), "x"), 0o700))
	if d.Withdraw("stuck") == nil {
		t.Error("a question is withdrawn that cannot be removed")
	}
}

// A person is not told that the question was over where the proxy took the answer and
// ended the question before Give looked again.
func TestTakenAtOnce(t *testing.T) {
	d := own(t)
	for n := range 200 {
		q := question(fmt.Sprint("q", n))
		must(t, d.Ask(q))
		ended := make(chan error)
		go func() {
			a, err := (*Answer)(nil), error(nil)
			for a == nil && err == nil {
				a, err = d.Answer(q.ID)
			}
			ended <- errors.Join(err, d.Withdraw(q.ID))
		}()
		err := d.Give(q, Answer{Approved: true})
		must(t, <-ended)
		if err != nil {
			t.Fatalf("question %d: the answer was taken, and its person is told: %v", n, err)
		}
	}
}

// A directory that is opened to others later has no answers that count.
func TestDirectoryThatIsOpenedLater(t *testing.T) {
	d := shared(t)
	for i, id := range []string{"q1", "q2"} {
		q := question(id)
		must(t, d.Ask(q))
		must(t, d.Give(q, Answer{Approved: true, Scope: Always}))
		must(t, unix.Chmod(d.Path(), map[bool]uint32{true: 0o3777, false: 0o770}[i == 0]))
		var rejected *Rejected
		if a, err := d.Answer(id); a != nil || !errors.As(err, &rejected) || !strings.Contains(err.Error(), "run chmod 3770") {
			t.Errorf("an answer in an open directory: %+v, %v", a, err)
		}
		if a, err := d.Allows("send_keys", "0123456789abcdef", nil, ""); a != nil || err == nil {
			t.Errorf("an entry in an open directory: %+v, %v", a, err)
		}
		must(t, unix.Chmod(d.Path(), 0o3770))
	}
}

// Old files of this user that nobody waits for are removed; nothing else is.
func TestSweep(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		left  string
	}{
		{0, ".new-x gone.answer notes old.answer old.json old.rejected-1"},
		{2 * time.Hour, "notes old.answer old.json old.rejected-1"},
		{25 * time.Hour, "notes old.rejected-1"},
	} {
		d := own(t)
		for _, name := range []string{"old.json", "old.answer", "gone.answer", ".new-x", "old.rejected-1", "notes"} {
			put(t, d, name, yes, 0o600)
		}
		for range 2 { // names come in any order: the answer may be looked at before its question
			d.swept = false
			d.sweep(time.Now().Add(tt.after))
		}
		list, err := names(d.Path())
		slices.Sort(list)
		if got := strings.Join(list, " "); err != nil || got != tt.left {
			t.Errorf("after %v: %q, %v, want %q", tt.after, got, err, tt.left)
		}
	}
}

// TestSweepLeavesOthers checks that the files of other users stay, also where this user could
// remove them.
func TestSweepLeavesOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	d := own(t)
	put(t, d, "gone.answer", yes, 0o600)
	must(t, os.Chown(d.name("gone", answerExt), 54321, -1))
	d.sweep(time.Now().Add(25 * time.Hour))
	if _, err := os.Lstat(d.name("gone", answerExt)); err != nil {
		t.Errorf("the file of another user is gone: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, text := range []string{yes, `{"approved":false,"scope":"always","by":"Ann","tool":"x","server_key":"0123456789abcdef","detections":["a"],"question":"x"}`, "", "{", `{"by":"\ud800"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, always := range []bool{false, true} {
			a, err := parseAnswer([]byte(text), always)
			if err != nil {
				continue
			}
			if !strings.Contains(text, `"approved"`) || checkBy(a.By) != nil || a.User != "" {
				t.Fatalf("%q is %+v", text, a)
			}
			if a.tool == "" {
				a.Detections, a.ServerKey = nil, ""
			}
			again, err := parseAnswer(a.encode(), a.tool != "")
			if err != nil {
				t.Fatalf("%q: written again as %q: %v", text, a.encode(), err)
			}
			if again.Approved != a.Approved || again.Scope != a.Scope || again.By != a.By || again.tool != a.tool {
				t.Fatalf("%q: %+v, then %+v", text, a, again)
			}
		}
	})
}

func FuzzQuestion(f *testing.F) {
	q := question("q")
	text, err := q.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"id":"q","calls":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := parseQuestion(text)
		if err != nil {
			return
		}
		if !validID(q.ID) || len(q.Calls) == 0 || len(q.Calls) > MaxCalls || q.ServerKey != "" && !validKey(q.ServerKey) || q.Digest == "" {
			t.Fatalf("%q is %+v", text, q)
		}
		q.MayAnswer()
		for i := range q.Calls {
			q.Calls[i].detectors()
		}
		if again, err := q.encode(); err == nil {
			if _, err := parseQuestion(again); err != nil {
				t.Fatalf("%q is written again as %q: %v", text, again, err)
			}
		}
	})
}

// An answer that cannot be read for a reason of this machine is neither taken nor
// set aside.
func TestAnswerWithoutDescriptors(t *testing.T) {
	d := own(t)
	q := question("q")
	must(t, d.Ask(q))
	must(t, d.Give(q, Answer{Approved: true}))
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: was.Max}))
	a, err := d.Answer("q")
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); e != nil {
		t.Fatal(e)
	}
	var rejected *Rejected
	if a != nil || err == nil || errors.As(err, &rejected) {
		t.Errorf("without file descriptors: %+v, %v, want an error", a, err)
	}
	if a, err := d.Answer("q"); a == nil || err != nil {
		t.Errorf("with file descriptors: %+v, %v", a, err)
	}
}

// TestDenialIsNotForAlways: who denies a call for always has allowed nothing.
func TestDenialIsNotForAlways(t *testing.T) {
	d := own(t)
	const key = "0123456789abcdef"
	q := question("q1")
	q.ServerKey = key
	must(t, d.Ask(q))
	if err := d.Give(q, Answer{Scope: Always, By: "Ann"}); err == nil {
		t.Error("a denial was given for always")
	}
	if got, err := d.Always(q.Calls[0].Tool, key); got != nil || err != nil {
		t.Errorf("the tool is always allowed: %+v, %v", got, err)
	}
}

// TestAlwaysForSeveralTools: a question about calls of two tools and of a method allows all.
func TestAlwaysForSeveralTools(t *testing.T) {
	d := own(t)
	const key = "0123456789abcdef"
	q := question("q1")
	q.ServerKey = key
	q.Calls = []Call{{Tool: "send_keys"}, {Tool: "kill_pane"}, {Method: "resources/read"}, {Tool: "send_keys"}}
	must(t, os.Mkdir(d.alwaysDir(), 0o700))
	// By hand, and it may be revoked alone.
	put(t, d, "always/kill_pane.answer", `{"approved":true,"scope":"always"}`, 0o600)
	must(t, errors.Join(d.Ask(q), d.Give(q, Answer{Approved: true, Scope: Always, By: "Ann"})))
	for _, tool := range []string{"send_keys", "kill_pane", "resources/read"} {
		if got, err := d.Always(tool, key); got == nil || err != nil {
			t.Errorf("%s: %+v, %v", tool, got, err)
		}
	}
	if list, err := d.Allowed(); len(list) != 4 || err != nil {
		t.Errorf("entries: %+v, %v", list, err)
	}
}

// TestAlwaysBound: who allows a tool with more sets of detections than are looked at is
// told that the last one is not kept.
func TestAlwaysBound(t *testing.T) {
	d := own(t)
	for n := range maxSets + 1 {
		q := question(fmt.Sprint("q", n))
		q.Calls[0].Detections = audit.DetectionsJSON([]audit.Detection{{Detector: fmt.Sprint("d", n), At: "keys"}})
		must(t, d.Ask(q))
		err := d.Give(q, Answer{Approved: true, Scope: Always})
		var not *NotKept
		if errors.As(err, &not) != (n == maxSets) || not == nil && err != nil {
			t.Errorf("set %d: %v", n, err)
		}
		must(t, d.Withdraw(q.ID))
	}
	if list, err := d.Allowed(); len(list) != maxSets || err != nil {
		t.Errorf("%d entries, %v, want %d", len(list), err, maxSets)
	}
}

// TestAlwaysAmongManyFiles: a proxy looks for entries by their names, so that
// files which an agent puts beside them do not delay its calls.
func TestAlwaysAmongManyFiles(t *testing.T) {
	d := own(t)
	const key = "0123456789abcdef"
	q := question("q1")
	q.Calls[0].Tool, q.Calls[0].Detections, q.ServerKey = "send_keys", "", key
	must(t, errors.Join(d.Ask(q), d.Give(q, Answer{Approved: true, Scope: Always, By: "Ann"})))
	look := func() {
		for _, tool := range []string{"send_keys", "kill_pane"} {
			if got, err := d.Always(tool, key); err != nil || (got != nil) != (tool == "send_keys") {
				t.Errorf("%s: %+v, %v", tool, got, err)
			}
		}
	}
	before := testing.AllocsPerRun(10, look)
	for n := range 100 {
		put(t, d, fmt.Sprintf("always/send_keys.%016x.answer", n), "junk", 0o600)
		put(t, d, fmt.Sprintf("always/kill_pane.%016x.answer", n), "junk", 0o600)
	}
	if after := testing.AllocsPerRun(10, look); after > 2*before { // a read of all would need thousands
		t.Errorf("%v allocations among other files, %v without", after, before)
	}
}
