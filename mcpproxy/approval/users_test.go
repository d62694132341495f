package approval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"auditproxy/deploy/dev"
)

// TestMain makes the test binary double as a process of another user.
func TestMain(m *testing.M) {
	if text := os.Getenv("APPROVAL_CONFIG"); text != "" {
		unix.Umask(0o077) // the strictest that users have
		if err := serve(text); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve does what the lines of standard input say, and prints a line for each.
func serve(text string) error {
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	d, err := Open(cfg)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		fmt.Println(strings.ReplaceAll(step(d, words[0], words[1:]), "\n", "; "))
	}
	return nil
}

func step(d *Dir, do string, args []string) string {
	in := func(i int) string { return filepath.Join(d.cfg.Dir, args[i]) }
	said := func(err error) string {
		var gone *Gone
		var answered *Answered
		var no *NotAllowed
		var rejected *Rejected
		switch {
		case err == nil:
			return "ok"
		case errors.As(err, &gone):
			return "gone"
		case errors.As(err, &answered):
			return "answered by " + answered.User + " " + answered.By
		case errors.As(err, &no):
			return "not allowed: " + err.Error()
		case errors.As(err, &rejected):
			return fmt.Sprintf("rejected from %s as %q: %v", rejected.User, filepath.Base(rejected.Kept), rejected.Err)
		}
		return "error " + err.Error()
	}
	switch do {
	case "ask":
		return said(d.Ask(question(args[0])))
	case "withdraw":
		return said(d.Withdraw(args[0]))
	case "answer":
		a, err := d.Answer(args[0])
		if a != nil {
			return fmt.Sprint("answer ", a.Approved, " ", a.Scope, " ", a.By, " ", a.User)
		}
		if err != nil {
			return said(err)
		}
		return "none"
	case "give": // id, scope, by
		list, err := d.Waiting()
		for i := range list {
			if list[i].ID == args[0] {
				return said(d.Give(&list[i], Answer{Approved: true, Scope: Scope(args[1]), By: args[2]}))
			}
		}
		return fmt.Sprint("not waiting ", err)
	case "allows": // tool, key, detections
		a, err := d.Allows(args[0], args[1], args[2:], "")
		if a != nil {
			return fmt.Sprint("allowed by ", a.User, " ", a.By)
		}
		if err != nil {
			return "error " + err.Error()
		}
		return "none"
	case "revoke":
		return said(d.Revoke(args[0], ""))
	case "write": // name, mode, text
		f, err := os.OpenFile(in(0), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return said(err)
		}
		defer f.Close()
		mode := fs.FileMode(0)
		fmt.Sscanf(args[1], "%o", &mode)
		_, err = f.WriteString(strings.Join(args[2:], " "))
		return said(errors.Join(err, f.Chmod(mode)))
	case "rename":
		return said(os.Rename(in(0), in(1)))
	case "remove":
		return said(os.Remove(in(0)))
	case "link":
		return said(os.Link(in(0), in(1)))
	case "mkdir": // name, mode
		mode := uint32(0)
		fmt.Sscanf(args[1], "%o", &mode)
		return said(errors.Join(os.Mkdir(in(0), 0o700), unix.Chmod(in(0), mode)))
	}
	return "unknown " + do
}

// A party is a process of a user.
type party struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

// do runs a step and checks how it ends.
func (p party) do(step, want string) {
	p.t.Helper()
	if got := p.try(step); got != want {
		p.t.Errorf("%s: %q, want %q", step, got, want)
	}
}

func (p party) try(step string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, step); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("%s: the process ended", step)
	}
	return p.out.Text()
}

// The users and the group of these tests need no entry in /etc/passwd.
const (
	agent    = 61001
	reviewer = 61002
	other    = 61003
	team     = 61010
)

// A place is a directory that users share, and a program that they may run.
type place struct{ dir, exe string }

// newPlace makes a directory of a user's and group's with a mode.
func newPlace(t *testing.T, uid int, mode uint32) place {
	t.Helper()
	dev.Superuser(t)
	top, err := os.MkdirTemp("", "approval") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	p := place{filepath.Join(top, "shared"), filepath.Join(top, "test")}
	for _, err := range []error{os.Chmod(top, 0o755), os.WriteFile(p.exe, text, 0o755), os.Mkdir(p.dir, 0o700),
		os.Chown(p.dir, uid, team), unix.Chmod(p.dir, mode)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// as starts a process of a user, who is in the group.
func (p place) as(t *testing.T, uid int, cfg Config) (party, string) {
	t.Helper()
	cfg.Dir = p.dir
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.exe)
	cmd.Dir = "/"
	cmd.Env = []string{"APPROVAL_CONFIG=" + string(text), "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), Groups: []uint32{team}}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	one := party{t, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if !one.out.Scan() {
		t.Fatal("the process does not start")
	}
	return one, one.out.Text()
}

func (p place) mustAs(t *testing.T, uid int, cfg Config) party {
	t.Helper()
	one, said := p.as(t, uid, cfg)
	if said != "ready" {
		t.Fatalf("a process of user %d: %s", uid, said)
	}
	return one
}

// newSharedPlace returns a place of root's with the agent's proxy, another program of
// the agent's user, and a reviewer's.
func newSharedPlace(t *testing.T) (p place, proxy, same, good party) {
	t.Helper()
	p = newPlace(t, 0, 0o3770)
	return p, p.mustAs(t, agent, strict), p.mustAs(t, agent, Config{People: true}), p.mustAs(t, reviewer, Config{People: true})
}

// strict are the approvers of a directory in which agents may not answer.
var strict = Config{Approvers: []string{"61002"}}

// A user who may answer does so in a shared directory, and nobody else.
func TestOnlyApproversAnswer(t *testing.T) {
	p, proxy, same, good := newSharedPlace(t)
	bad := p.mustAs(t, other, Config{People: true})

	proxy.do("ask q1", "ok")
	proxy.do("answer q1", "none")
	same.do("give q1 once agent", "not allowed: answering: your answer would not count: 61001 runs the agent, and approval.same_user is false: 61002, root may answer, but not 61001")
	bad.do("give q1 once stranger", "not allowed: answering: your answer would not count: 61003 is not an approver: 61002, root may answer, but not 61001")
	// A program of theirs would not ask whether it may.
	same.do(`write q1.answer 640 {"approved":true,"by":"61002"}`, "ok")
	proxy.do("answer q1", `rejected from 61001 as "q1.rejected-1": 61001 runs the agent, and approval.same_user is false: 61002, root may answer, but not 61001`)
	proxy.do("answer q1", "none")
	good.do("give q1 session Ann", "ok")
	good.do("give q1 session Ann", "answered by 61002 Ann")
	proxy.do("answer q1", "answer true session Ann 61002")
	proxy.do("withdraw q1", "ok")
	proxy.do("answer q1", `error reading the answer to question "q1": this process did not ask it`)

	// The answer of a stranger cannot be moved, and is told once.
	proxy.do("ask q2", "ok")
	bad.do(`write q2.answer 640 {"approved":true}`, "ok")
	proxy.do("answer q2", `rejected from 61003 as ".": 61003 is not an approver: 61002, root may answer, but not 61001`)
	proxy.do("answer q2", "none")
	good.do("give q2 once Ann", "answered by 61003 ")
	bad.do("remove q2.answer", "ok")
	good.do("give q2 once Ann", "ok")
	proxy.do("answer q2", "answer true once Ann 61002")

	// Where a late answer or a rejected one cannot be moved, one note says so.
	proxy.do("ask q3", "ok")
	good.do("give q3 once Ann", "ok")
	proxy.do("withdraw q3", "ok")
	proxy.do("ask q4", "ok")
	bad.do(`write q4.answer 640 {"approved":true}`, "ok")
	proxy.do("answer q4", `rejected from 61003 as ".": 61003 is not an approver: 61002, root may answer, but not 61001`)
	proxy.do("withdraw q4", "ok")
	for _, id := range []string{"q3", "q4"} {
		if list, err := filepath.Glob(filepath.Join(p.dir, id+".*")); err != nil || len(list) != 2 {
			t.Errorf("question %s left %q, %v, want its answer and one note", id, list, err)
		}
	}
}

// The agent cannot use what an approver wrote about another call: it can neither
// move nor link it, and the answer names its question.
func TestAnswersCannotBeMoved(t *testing.T) {
	_, proxy, same, good := newSharedPlace(t)

	proxy.do("ask harmless", "ok")
	proxy.do("ask harmful", "ok")
	good.do("give harmless once Ann", "ok")
	if got := same.try("rename harmless.answer harmful.answer"); got == "ok" {
		t.Error("the agent moved an answer")
	}
	if same.try("link harmless.answer harmful.answer") == "ok" { // fs.protected_hardlinks is off
		proxy.do("answer harmful", "none")
	}
	good.do("rename harmless.answer harmful.answer", "ok") // as a backup program might
	proxy.do("answer harmful", `rejected from 61002 as ".": it answers another question, or one that was changed`)
}

// The proxy's user can rewrite the question that a person reads. The answer
// tells which one it was.
func TestAnswerToChangedQuestion(t *testing.T) {
	p, proxy, same, good := newSharedPlace(t)
	proxy.do("ask q1", "ok")
	text, err := os.ReadFile(filepath.Join(p.dir, "q1.json"))
	if err != nil {
		t.Fatal(err)
	}
	same.do("write q1.json 640 "+strings.Replace(string(text[:len(text)-1]), "rm -rf x", "ls", 1), "ok")
	good.do("give q1 once Ann", "ok")
	proxy.do("answer q1", `rejected from 61002 as ".": it answers another question, or one that was changed`)
}

// In a directory that belongs to the agent's user, that user could move answers.
func TestDirectoryOfTheAgent(t *testing.T) {
	p := newPlace(t, agent, 0o3770)
	alone := strict
	alone.Own = true
	if _, said := p.as(t, agent, alone); !strings.Contains(said, "is this user's alone") {
		t.Errorf("opening an own directory for the answers of others: %s", said)
	}
	if _, said := p.as(t, agent, strict); !strings.HasPrefix(said, "error opening approval directory") || !strings.Contains(said, "could move the answers of others") {
		t.Errorf("opening a directory of the agent's: %s", said)
	}
	proxy := p.mustAs(t, agent, Config{SameUser: true})
	good := p.mustAs(t, reviewer, Config{People: true})
	proxy.do("ask q1", "ok")
	good.do("give q1 once Ann", "not allowed: answering: your answer would not count: 61002 is not an approver: 61001, root may answer")
}

// Root answers in the directory of an agent's user, which can read the answer.
func TestRootAnswers(t *testing.T) {
	p := newPlace(t, agent, 0o700)
	must(t, os.Chown(p.dir, agent, agent))
	proxy := p.mustAs(t, agent, Config{Own: true, SameUser: true})
	root := p.mustAs(t, 0, Config{SameUser: true, People: true})
	proxy.do("ask q1", "ok")
	root.do("give q1 always Root", "ok")
	proxy.do("answer q1", "answer true always Root root")
	proxy.do("allows send_keys 0123456789abcdef recursive_delete", "allowed by root Root")
	proxy.do("withdraw q1", "ok")
	// Root sees that an entry of the agent's user counts there.
	proxy.do("ask q2", "ok")
	proxy.do("revoke send_keys", "ok")
	proxy.do("give q2 always Me", "ok")
	root.do("allows send_keys 0123456789abcdef", "allowed by 61001 Me")
}

// Tools are always allowed by approvers alone, for a server and what was found.
func TestAlwaysInSharedDirectory(t *testing.T) {
	p, proxy, same, good := newSharedPlace(t)
	proxy.do("ask q1", "ok")
	proxy.do("allows send_keys 0123456789abcdef", "none")
	always := filepath.Join(p.dir, "always")
	must(t, os.Mkdir(always, 0o700)) // as a crash leaves it
	got := proxy.try("allows send_keys 0123456789abcdef")
	if !strings.HasPrefix(got, "error reading what is always allowed") {
		t.Errorf("with a directory that others cannot read: %s", got)
	}
	must(t, os.Remove(always))
	good.do("give q1 always Ann", "ok")
	proxy.do("allows send_keys 0123456789abcdef", "allowed by 61002 Ann")
	proxy.do("allows send_keys 0123456789abcdef recursive_delete", "allowed by 61002 Ann")
	proxy.do("allows send_keys 0123456789abcdef recursive_delete shutdown", "none")
	proxy.do("allows send_keys fedcba9876543210", "none")
	proxy.do("allows kill_server 0123456789abcdef", "none")

	// The agent can link it, where fs.protected_hardlinks is off, and its writer
	// then removes the first name.
	good.do("rename q1.answer always/kill_server.answer", "ok")
	if got := proxy.try("allows kill_server 0123456789abcdef"); !strings.Contains(got, "it answers one question") {
		t.Errorf("an answer as an entry: %s", got)
	}
	good.do("remove always/kill_server.answer", "ok")

	same.do(`write always/kill_server.answer 640 {"approved":true}`, "ok")
	if got := proxy.try("allows kill_server 0123456789abcdef"); !strings.Contains(got, "61001 runs the agent") {
		t.Errorf("the agent's own entry: %s", got)
	}
	if same.try("rename always/send_keys.answer always/kill_pane.answer") == "ok" {
		t.Error("the agent moved an entry")
	}
	good.do("rename always/send_keys.answer always/kill_pane.answer", "ok")
	if got := proxy.try("allows kill_pane 0123456789abcdef"); !strings.Contains(got, "its name is of another tool") {
		t.Errorf("a moved entry: %s", got)
	}
	good.do(`write always/list_panes.answer 640 {"approved":true,"scope":"always"}`, "ok") // by hand: for every server, without detections
	proxy.do("allows list_panes fedcba9876543210", "allowed by 61002 ")
	proxy.do("allows list_panes fedcba9876543210 opaque", "none")
	if got := same.try("revoke list_panes"); !strings.Contains(got, "only 61002 or root can") {
		t.Errorf("revoking as the agent: %s", got)
	}
	good.do("revoke list_panes", "ok")
	must(t, os.WriteFile(filepath.Join(always, "list_windows.answer"), []byte(`{"approved":true,"scope":"always"}`), 0o600))
	must(t, os.Chown(filepath.Join(always, "list_windows.answer"), 0, team))
	must(t, os.Chmod(filepath.Join(always, "list_windows.answer"), 0o640))
	person := strict
	person.People = true // who does not know whose proxies there are
	for _, one := range []party{proxy, p.mustAs(t, reviewer, person)} {
		one.do("allows list_windows 0123456789abcdef", "allowed by root ")
	}
	proxy.do("allows list_panes fedcba9876543210", "none")
	if got := good.try("revoke list_panes"); !strings.Contains(got, "file does not exist") {
		t.Errorf("revoking twice: %s", got)
	}
}

// An agent that makes the directory of the entries first could move them.
func TestAlwaysDirectoryOfTheAgent(t *testing.T) {
	_, proxy, same, good := newSharedPlace(t)
	proxy.do("ask q1", "ok")
	for _, mode := range []string{"770", "1770"} {
		same.do("mkdir always "+mode, "ok")
		got := good.try("give q1 always Ann")
		if !strings.HasPrefix(got, "error answering: ") || !strings.Contains(got, "always") {
			t.Errorf("with mode %s: %s", mode, got)
		}
		proxy.do("answer q1", "none")
		same.do("remove always", "ok")
	}
	good.do("give q1 once Ann", "ok")
	proxy.do("answer q1", "answer true once Ann 61002")
}

// Members of a group are those of /etc/group, and of /etc/passwd for the group
// of a user's own.
func TestGroupsMayAnswer(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, 0, 0o3770)
	proxy := p.mustAs(t, agent, Config{Approvers: []string{"%" + nobody.Gid}})
	good := p.mustAs(t, uid, Config{People: true})
	bad := p.mustAs(t, other, Config{People: true})
	proxy.do("ask q1", "ok")
	if got := bad.try("give q1 once stranger"); !strings.Contains(got, "the groups of user id 61003 cannot be looked up") {
		t.Errorf("a user without an entry: %s", got)
	}
	bad.do(`write q1.answer 640 {"approved":true}`, "ok")
	if got := proxy.try("answer q1"); !strings.Contains(got, "the groups of user id 61003 cannot be looked up") {
		t.Errorf("the answer of a user without an entry: %s", got)
	}
	bad.do("remove q1.answer", "ok")
	good.do("give q1 once No", "ok")
	proxy.do("answer q1", "answer true once No "+nobody.Username)
}
