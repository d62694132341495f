package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"auditproxy/deploy/dev"
	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"
)

// Users of the operating system that need no entry in /etc/passwd, and the group
// that may write questions and answers.
const (
	agentUser    = 64001
	approverUser = 64002
	otherUser    = 64003
	answerGroup  = 64010
)

// TestAnswersOfOtherUsers runs agent and proxy as one user and has others answer
// in a shared directory, under an administrator's configuration: only the
// approver's answer counts. The agent's user can neither answer nor choose
// another directory, channel or approver.
func TestAnswersOfOtherUsers(t *testing.T) {
	dev.Superuser(t)
	t.Parallel()
	proxy := reachableProxy(t)
	dir := filepath.Dir(proxy)
	must(t, os.WriteFile(filepath.Join(dir, "roots"), []byte(`{"approved":true}`), 0o644))
	const yes = `printf '{"approved":true}' > "$1.answer"`
	for _, tt := range []struct {
		name     string
		user     int
		script   string   // sh's, in the directory of answers; $1 is the question's id
		env      []string // of the proxy
		flags    []string
		home     string // the agent's configuration
		refused  bool   // the configuration is
		executed bool
	}{
		{name: "approver", user: approverUser, script: yes, executed: true},
		{name: "root", user: 0, script: yes, executed: true},
		{name: "agent", user: agentUser, script: yes},
		{name: "user without permission", user: otherUser, script: yes},
		{name: "truncated", user: approverUser, script: `printf '{"approved":tr' > "$1.answer"`},
		{name: "link to an answer", user: agentUser, script: `ln -s ` + filepath.Join(dir, "roots") + ` "$1.answer"`},
		{name: "huge", user: approverUser, script: `(printf '{"approved":true,"by":"'; head -c 5000 /dev/zero | tr '\0' a; printf '"}') > "$1.answer"`},
		{name: "no file", user: approverUser, script: `mkfifo "$1.answer"`},
		{name: "writable for the group", user: approverUser, script: `umask 0; ` + yes},
		{name: "claims another user", user: otherUser, script: `printf '{"approved":true,"user":"root"}' > "$1.answer"`},
		{name: "always, by the agent", user: agentUser, script: yes + `; mkdir -p always; printf '{"approved":true,"scope":"always"}' > always/work_1.answer`},
		{name: "same_user by variable", user: agentUser, script: yes, env: []string{"AUDITPROXY_APPROVAL_SAME_USER=true"}, refused: true},
		{name: "approvers by flag", user: agentUser, script: yes, flags: []string{"--approval-approvers", fmt.Sprint(agentUser)}, refused: true},
		{name: "directory by flag", user: agentUser, script: yes, flags: []string{"--approval-dir", dir}, refused: true},
		{name: "channel by flag", user: agentUser, script: yes, flags: []string{"--approval-channels", "client"}, refused: true},
		{name: "same_user by a file", user: agentUser, script: yes, home: "approval: {same_user: true}", refused: true},
		{name: "another policy", user: agentUser, script: yes, flags: []string{"--policy-file", "/dev/null"}, refused: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := reachable(t)
			answers := sharedAnswers(t, dir)
			for _, name := range []string{"home", "home/spool"} {
				must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
				must(t, os.Chown(filepath.Join(dir, name), agentUser, agentUser))
			}
			if tt.home != "" {
				file := filepath.Join(dir, "home/config.yaml")
				must(t, os.WriteFile(file, []byte(tt.home), 0o644))
				must(t, os.Chown(file, agentUser, agentUser))
				tt.flags = []string{"--config", file}
			}
			policy := filepath.Join(dir, "policy.json")
			must(t, os.WriteFile(policy, []byte(asksAboutWork1), 0o644))
			system := filepath.Join(dir, "config.yaml")
			must(t, os.WriteFile(system, fmt.Appendf(nil, `policy: {file: %s}
approval: {channels: [files], dir: %s, approvers: ["%d"], same_user: false}
enforce: [approval.channels, approval.approvers, approval.same_user, approval.dir, policy.file]
`, policy, answers, approverUser), 0o644))
			w := prepare(t, setup{proxy: proxy, spool: filepath.Join(dir, "home/spool"), argv: []string{"cat"}, flags: tt.flags,
				env: append([]string{"SYSTEM_CONFIG=" + system, "HOME=" + filepath.Join(dir, "home")}, tt.env...)})
			log, err := os.Create(filepath.Join(dir, "log"))
			must(t, err)
			defer log.Close()
			w.cmd.Dir, w.cmd.Stderr = dir, log
			w.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agentUser, Gid: agentUser, Groups: []uint32{answerGroup}}}
			must(t, w.cmd.Start())
			w.started()
			if tt.refused {
				out, err := io.ReadAll(w.out)
				must(t, err)
				if status := w.wait(); status.ExitStatus() == 0 || len(out) > 0 || !strings.Contains(readFile(t, log.Name()), "enforce") {
					t.Errorf("the proxy ended with %d:\n%s", status.ExitStatus(), readFile(t, log.Name()))
				}
				return
			}
			must(t, w.send([]byte(callOne)))
			questions, err := approval.Open(approval.Config{Dir: answers, People: true})
			must(t, err)
			var waiting []approval.Question
			eventually(t, "there is no question", func() bool {
				waiting, err = questions.Waiting()
				return err == nil && len(waiting) == 1
			})
			answer := exec.Command("sh", "-c", tt.script, "sh", waiting[0].ID)
			answer.Dir = answers
			answer.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(tt.user), Gid: answerGroup}}
			if out, err := answer.CombinedOutput(); err != nil {
				t.Fatalf("answering: %v\n%s", err, out)
			}
			if tt.executed {
				line, err := w.out.ReadString('\n')
				if err != nil || line != callOne {
					t.Errorf("the client got %q, %v, want the call back from the server", line, err)
				}
			} else {
				eventually(t, "the answer is not rejected", func() bool { return strings.Contains(readFile(t, log.Name()), "does not count") })
			}
			w.end()
			must(t, filepath.WalkDir(w.spool, func(name string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Lchown(name, 0, 0)) // root reads only its own spool
			}))
			r := readTrail(t, w.spool).finals[1][0]
			given, err := audit.ParseApproval(r.Approval)
			must(t, err)
			if r.Forwarded != tt.executed || (given.Outcome == "approved") != tt.executed {
				t.Errorf("the call was forwarded: %t, with approval %+v\n%s", r.Forwarded, given, readFile(t, log.Name()))
			}
		})
	}
}

// TestUserChoosesNoName runs agent and proxy as a user that /etc/passwd does not have, with
// the name of an approver in $USER: the agent's answer does not count, and the record
// has the user's id.
func TestUserChoosesNoName(t *testing.T) {
	dev.Superuser(t)
	t.Parallel()
	const approver = "daemon" // of every /etc/passwd
	dir := reachable(t)
	proxy := filepath.Join(dir, "auditproxy")
	must(t, os.WriteFile(proxy, []byte(readFile(t, shipped(t))), 0o755))
	policy := filepath.Join(dir, "policy.json")
	must(t, os.WriteFile(policy, []byte(asksAboutWork1), 0o644))
	answers := sharedAnswers(t, dir)
	home := filepath.Join(dir, "home")
	must(t, os.Mkdir(home, 0o700))
	must(t, os.Chown(home, agentUser, agentUser))
	w := prepare(t, setup{proxy: proxy, spool: filepath.Join(home, "spool"), argv: []string{"cat"}, env: []string{"HOME=" + home, "USER=" + approver},
		flags: []string{"--policy-file", policy, "--approval-channels", "files", "--approval-dir", answers, "--approval-approvers", approver}})
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	defer log.Close()
	agent := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agentUser, Gid: agentUser, Groups: []uint32{answerGroup}}}
	w.cmd.Dir, w.cmd.Stderr, w.cmd.SysProcAttr = dir, log, agent
	must(t, w.cmd.Start())
	w.started()
	must(t, w.send([]byte(callOne)))
	var questions []string
	eventually(t, "there is no question", func() bool {
		questions, err = filepath.Glob(filepath.Join(answers, "*.json"))
		return err == nil && len(questions) == 1
	})
	answer := exec.Command("sh", "-c", `printf '{"approved":true}' > "${1%.json}.answer"`, "sh", questions[0])
	answer.Dir, answer.SysProcAttr = dir, agent
	if out, err := answer.CombinedOutput(); err != nil {
		t.Fatalf("answering: %v\n%s", err, out)
	}
	eventually(t, "the question is not over, and its answer is not rejected", func() bool {
		_, err := os.Stat(questions[0])
		return err != nil || strings.Contains(readFile(t, log.Name()), "does not count")
	})
	w.end()
	must(t, filepath.WalkDir(w.spool, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, 0, 0)) // root reads only its own spool
	}))
	r := readTrail(t, w.spool).finals[1][0]
	if given, err := audit.ParseApproval(r.Approval); err != nil || r.Forwarded || given.Outcome != "cancelled" || r.User != fmt.Sprint(agentUser) {
		t.Errorf("the call of %q was forwarded: %t, with approval %+v, %v\n%s", r.User, r.Forwarded, given, err, readFile(t, log.Name()))
	}
}

// sharedAnswers makes a directory in dir for the questions and answers of several users.
func sharedAnswers(t *testing.T, dir string) string {
	t.Helper()
	answers := filepath.Join(dir, "answers")
	must(t, os.Mkdir(answers, 0o700))
	must(t, os.Chown(answers, 0, answerGroup))
	must(t, os.Chmod(answers, 0o770|os.ModeSetgid|os.ModeSticky))
	return answers
}

// reachable is a temporary directory that other users can reach.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "users")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// reachableProxy is the program in such a directory: others cannot reach the test binary.
func reachableProxy(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	proxy := filepath.Join(reachable(t), "auditproxy")
	must(t, os.WriteFile(proxy, []byte(readFile(t, self)), 0o755))
	return proxy
}
