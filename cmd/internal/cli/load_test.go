package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// testKeys has a key of each kind.
var testKeys = []Key{
	{Name: "mode", Kind: Choice, Default: "strict", Choices: []string{"strict", "loose"}},
	{Name: "store.dir", Kind: Path, Default: "~/state", Varies: true},
	{Name: "store.age", Kind: Duration, Default: "30d"},
	{Name: "store.bytes", Kind: Size, Default: "1GiB"},
	{Name: "names", Kind: List},
	{Name: "tls.enabled", Kind: Bool},
	{Name: "tenant", Kind: Text},
	{Name: "login.password", Kind: Password},
}

// A world holds everything that Load reads in these tests.
type world struct {
	dir   string
	env   []string
	flags []string
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	return &world{dir: dir, env: []string{"HOME=" + filepath.Join(dir, "home")}}
}

const (
	systemFile = "etc/config.yaml"
	userFile   = "home/.config/prog/config.yaml"
)

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// load returns problems as text in which the directory of the test is DIR.
func (w *world) load(t *testing.T) (Values, []string) {
	t.Helper()
	flags := pflag.NewFlagSet("prog", pflag.ContinueOnError)
	AddFlags(flags, testKeys)
	if err := flags.Parse(w.flags); err != nil {
		t.Fatalf("parsing flags: %v", err)
	}
	v, problems := Load(Config{Program: "prog", Keys: testKeys, SystemFile: w.path(systemFile), SystemUID: os.Getuid(), Env: w.env, Flags: flags})
	var list []string
	for _, p := range problems {
		list = append(list, strings.ReplaceAll(p.String(), w.dir, "DIR"))
	}
	return v, list
}

func (w *world) mustLoad(t *testing.T) Values {
	t.Helper()
	v, problems := w.load(t)
	if problems != nil {
		t.Fatalf("Load: %q", problems)
	}
	return v
}

func TestDefaults(t *testing.T) {
	w := newWorld(t)
	v := w.mustLoad(t)
	if got, want := v.String("store.dir"), w.path("home/state"); got != want {
		t.Errorf("store.dir = %q, want %q", got, want)
	}
	if got, want := v.Duration("store.age"), 30*24*time.Hour; got != want {
		t.Errorf("store.age = %v, want %v", got, want)
	}
	if got, want := v.Size("store.bytes"), int64(1<<30); got != want {
		t.Errorf("store.bytes = %d, want %d", got, want)
	}
	if got := v.Source("mode"); got.Layer != Default {
		t.Errorf("source of mode = %v, want the default", got)
	}
}

// TestLayers sets the value in one more layer in each step and expects it to
// win.
func TestLayers(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		layer Layer
		give  func()
		from  string
	}{
		{System, func() { w.write(t, systemFile, "tenant: a1\n") }, w.path(systemFile)},
		{File, func() { w.write(t, userFile, "tenant: a2\n") }, w.path(userFile)},
		{Variable, func() { w.env = append(w.env, "PROG_TENANT=a3") }, "variable PROG_TENANT"},
		{Flag, func() { w.flags = append(w.flags, "--tenant=a4") }, "flag --tenant"},
	} {
		step.give()
		v := w.mustLoad(t)
		if got, want := v.String("tenant"), fmt.Sprintf("a%d", step.layer); got != want {
			t.Errorf("with layer %d tenant = %q, want %q", step.layer, got, want)
		}
		if got := v.Source("tenant").String(); got != step.from {
			t.Errorf("source = %q, want %q", got, step.from)
		}
	}
}

func TestUserFile(t *testing.T) {
	w := newWorld(t)
	w.write(t, userFile, "tenant: home\n")
	w.write(t, "xdg/prog/config.yaml", "tenant: xdg\n")
	w.write(t, "other.yaml", "tenant: named\n")
	w.write(t, "cwd/prog/config.yaml", "tenant: working directory\n")
	w.write(t, "cwd/.config/prog/config.yaml", "tenant: working directory\n")
	w.write(t, "cwd/config.yaml", "tenant: working directory\n")
	t.Chdir(w.path("cwd"))
	home := "HOME=" + w.path("home")
	for _, tt := range []struct {
		name  string
		env   []string
		flags []string
		want  string
	}{
		{"is in ~/.config", []string{home}, nil, "home"},
		{"is in $XDG_CONFIG_HOME", []string{home, "XDG_CONFIG_HOME=" + w.path("xdg")}, nil, "xdg"},
		{"is not in a relative $XDG_CONFIG_HOME", []string{home, "XDG_CONFIG_HOME=."}, nil, "home"},
		{"is not in a relative home", []string{"HOME=."}, []string{"--store-dir=/x"}, ""},
		{"is what --config names instead", []string{home}, []string{"--config", w.path("other.yaml")}, "named"},
		{"may be missing", nil, []string{"--store-dir=/x"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The default of store.dir needs a home; only these cases have none.
			w := world{dir: w.dir, env: tt.env, flags: tt.flags}
			v, problems := w.load(t)
			for _, p := range problems {
				if !strings.Contains(p, "store.dir") {
					t.Errorf("problem: %s", p)
				}
			}
			if got := v.String("tenant"); got != tt.want {
				t.Errorf("tenant = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestValues(t *testing.T) {
	w := newWorld(t)
	w.write(t, userFile, `
mode: loose
store: {dir: ~/here/., age: 1h30m, bytes: 1536}
names: [a, "b,c"]
tls:
  enabled: true
login: {password: hunter2}
`)
	v := w.mustLoad(t)
	want := []Setting{
		{"mode", "loose", Source{File, w.path(userFile)}},
		{"store.dir", w.path("home/here"), Source{File, w.path(userFile)}},
		{"store.age", "1h30m0s", Source{File, w.path(userFile)}},
		{"store.bytes", "1536B", Source{File, w.path(userFile)}},
		{"names", "a,b,c", Source{File, w.path(userFile)}},
		{"tls.enabled", "true", Source{File, w.path(userFile)}},
		{"tenant", "", Source{}},
		{"login.password", "<secret>", Source{File, w.path(userFile)}},
	}
	if diff := cmp.Diff(want, v.Settings()); diff != "" {
		t.Errorf("Settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b,c"}, v.List("names")); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := v.Secret("login.password").Reveal(); got != "hunter2" {
		t.Errorf("password = %q", got)
	}
}

func TestVariablesAndFlags(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "PROG_NAMES= a , b", "PROG_STORE_BYTES=32MB", "PROG_MODE=", "PROG_LOGIN_PASSWORD=${x}",
		// set by Kubernetes next to a Service named prog
		"PROG_SERVICE_HOST=10.0.0.1", "PROG_SERVICE_PORT_HTTP=80", "PROG_PORT=tcp://10.0.0.1:80", "PROG_PORT_80_TCP_ADDR=10.0.0.1",
		"PROGRAM_X=somebody else's")
	w.flags = []string{"--names=c", "--names=d,e", "--tls-enabled", "--store-dir=sub"}
	t.Chdir(w.dir)
	v := w.mustLoad(t)
	if diff := cmp.Diff([]string{"c", "d", "e"}, v.List("names")); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := v.Size("store.bytes"); got != 32_000_000 {
		t.Errorf("store.bytes = %d", got)
	}
	if got := v.String("mode"); got != "strict" {
		t.Errorf("mode = %q, an empty variable must not count", got)
	}
	if got, want := v.String("store.dir"), w.path("sub"); got != want {
		t.Errorf("store.dir = %q, want %q", got, want)
	}
	if !v.Bool("tls.enabled") {
		t.Error("tls.enabled is false")
	}
}

func TestSecretHasNoFlag(t *testing.T) {
	flags := pflag.NewFlagSet("prog", pflag.ContinueOnError)
	AddFlags(flags, testKeys)
	if flags.Lookup("login-password") != nil {
		t.Error("a password can be given on the command line, which everybody can read")
	}
}

func TestProblems(t *testing.T) {
	const user = "DIR/" + userFile
	for _, tt := range []struct {
		name   string
		system string
		user   string
		env    []string
		flags  []string
		want   []string
	}{
		{"names all of them, wherever they are",
			"modes: x\n", "store: {dir: rel, age: 20, bytes: 1.5}\nteenant: x\n",
			[]string{"PROG_MODE=stricct", "PROG_TENNANT=x"}, []string{"--tls-enabled=1", "--store-age=soon", "--store-dir=~user/x"},
			[]string{
				"DIR/" + systemFile + `: modes: unknown key; did you mean "mode"?`,
				user + `: store.age: is "20", want a time such as 20ms, 1h30m or 30d`,
				user + `: store.bytes: is a number, want a size such as 512KiB, 32MB or 1GiB`,
				user + `: store.dir: is "rel", want an absolute path`,
				user + `: teenant: unknown key; did you mean "tenant"?`,
				`variable PROG_MODE: mode: is "stricct", want "strict" or "loose"`,
				`variable PROG_TENNANT: unknown key; did you mean "PROG_TENANT"?`,
				`flag --store-dir: store.dir: is "~user/x", want an absolute path`,
				`flag --store-age: store.age: is "soon", want a time such as 20ms, 1h30m or 30d`,
				`flag --tls-enabled: tls.enabled: is "1", want true or false`,
			}},
		{"does not guess types", "",
			"mode: 1\ntenant: 42\nnames: a,b\ntls: {enabled: \"true\"}\nlogin: {password: 1234}\nstore: [1]\n", nil, nil,
			[]string{
				user + `: login.password: is a number, want text; a number needs quotes`,
				user + `: mode: is a number, want "strict" or "loose"`,
				user + `: names: is text, want a list of texts`,
				user + `: store: has no value of its own; want keys below it, such as "store.age"`,
				user + `: tenant: is a number, want text; a number needs quotes`,
				user + `: tls.enabled: is text, want true or false`,
			}},
		{"looks into lists", "", "names: [a, 1, '']\n", nil, nil, []string{user + `: names: entry 2 is a number, want text`}},
		{"finds empty entries", "", "", []string{"PROG_NAMES=a,,b"}, nil, []string{`variable PROG_NAMES: names: entry 2 is empty`}},
		{"finds keys without a value", "", "tenant:\n", nil, nil, []string{user + `: tenant: has no value`}},
		{"finds a section in a value's place", "", "tenant: {a: b}\n", nil, nil, []string{user + `: tenant.a: unknown key; did you mean "tenant"?`}},
		{"refuses a name twice", "", "tenant: a\ntenant: b\n", nil, nil, []string{user + `: line 2: mapping key "tenant" already defined at line 1`}},
		{"refuses a name twice in another case", "", "tenant: a\nTenant: b\n", nil, nil,
			[]string{user + `: "Tenant": names are in lower case and have no dots; write a level below the other`}},
		{"refuses such a name below another", "", "store: {Dir: /b}\n", nil, nil,
			[]string{user + `: store."Dir": names are in lower case and have no dots; write a level below the other`}},
		{"refuses names with dots", "", "store: {dir: /a}\nstore.dir: /b\n", nil, nil,
			[]string{user + `: "store.dir": names are in lower case and have no dots; write a level below the other`}},
		{"refuses a second document", "", "tenant: a\n---\ntenant: b\n", nil, nil, []string{user + `: more than one YAML document`}},
		{"does not quote what is no configuration", "", "s3cr3t-k3y-of-somebody\n", nil, nil, []string{user + `: line 1: want settings, name: value`}},
		{"does not quote a password that is an alias", "", "login: {password: *s3cr3t}\n", nil, nil, []string{user + `: a text that starts with "*" or "&" needs quotes`}},
		{"does not quote a password with a type", "", "login: {password: !!int s3cr3t}\n", nil, nil, []string{user + `: a value has a tag of another type; a text that starts with "!" needs quotes`}},
		{"does not quote a name that is a section", "", "login: {? {a: s3cr3t} : 1}\n", nil, nil, []string{user + `: a name is not text`}},
		{"does not lose a password that is a tag", "", "login:\n  password: !s3cr3t\n", nil, nil, []string{user + `: line 2: a text that starts with "!" needs quotes`}},
		{"does not quote a password that is a section", "", "login:\n  password: {S3cr3t}\n", nil, nil, []string{user + `: line 2: a text that starts with "{" needs quotes`}},
		{"says what a tab is instead of", "", "login:\n\tpassword: s3cr3t\n", nil, nil, []string{user + `: yaml: line 2: a tab, or a text that starts with a character such as "@": indent with spaces, and put such a text in quotes`}},
		{"finds syntax errors", "", "store: [\n", nil, nil, []string{user + `: yaml: line 1: did not find expected node content`}},
		{"finds unexpanded names", "", "tenant: ${TENANT}\n", []string{"PROG_MODE=${env:MODE}"}, []string{"--store-dir=${HOME}/x"},
			[]string{
				user + `: tenant: contains an unexpanded ${NAME}; write the value itself`,
				`variable PROG_MODE: mode: contains an unexpanded ${NAME}; write the value itself`,
				`flag --store-dir: store.dir: contains an unexpanded ${NAME}; write the value itself`,
			}},
		{"wants the file that is named", "", "", nil, []string{"--config=/nonexistent/c.yaml"}, []string{`/nonexistent/c.yaml: no such file or directory`}},
		{"leaves enforcing to the administrator", "", "enforce: [mode]\n", nil, nil, []string{user + `: enforce: only the administrator's file can enforce keys`}},
		{"knows what is enforced", "enforce: [mode, mood]\n", "", nil, nil, []string{"DIR/" + systemFile + `: enforce: "mood" is not a key`}},
		{"wants a list of what is enforced", "enforce: mode\n", "", nil, nil, []string{"DIR/" + systemFile + `: enforce: is text, want a list of texts`}},
		{"wants a value where the default varies", "enforce: [store.dir]\n", "", nil, nil,
			[]string{"DIR/" + systemFile + `: store.dir: is enforced without a value, and its default depends on the user`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, systemFile, tt.system)
			w.write(t, userFile, tt.user)
			w.env = append(w.env, tt.env...)
			w.flags = tt.flags
			_, got := w.load(t)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnforced(t *testing.T) {
	const text = " is enforced by DIR/" + systemFile + " and cannot be changed"
	attempts := []struct {
		name string
		try  func(*testing.T, *world, string)
		from string
	}{
		{"user's file", func(t *testing.T, w *world, mode string) { w.write(t, userFile, "mode: "+mode+"\n") }, "DIR/" + userFile},
		{"named file", func(t *testing.T, w *world, mode string) {
			w.write(t, "c.yaml", "mode: "+mode+"\n")
			w.flags = []string{"--config", w.path("c.yaml")}
		}, "DIR/c.yaml"},
		{"environment", func(t *testing.T, w *world, mode string) { w.env = append(w.env, "PROG_MODE="+mode) }, "variable PROG_MODE"},
		{"flags", func(t *testing.T, w *world, mode string) { w.flags = []string{"--mode", mode} }, "flag --mode"},
	}
	for _, attempt := range attempts {
		for _, system := range []string{"enforce: [mode]\n", "mode: strict\nenforce: [mode]\n"} {
			t.Run(attempt.name, func(t *testing.T) {
				w := newWorld(t)
				w.write(t, systemFile, system)
				attempt.try(t, w, "loose")
				v, problems := w.load(t)
				if diff := cmp.Diff([]string{attempt.from + ": mode:" + text}, problems); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				if got := v.String("mode"); got != "strict" {
					t.Errorf("mode = %q after the attempt", got)
				}
			})
			t.Run(attempt.name+" with the same value", func(t *testing.T) {
				w := newWorld(t)
				w.write(t, systemFile, system)
				attempt.try(t, w, "strict")
				w.mustLoad(t)
			})
		}
	}
}

func TestEnforcedValue(t *testing.T) {
	w := newWorld(t)
	w.write(t, systemFile, "enforce: [mode]\nmode: loose\n") // in this order or the other
	w.write(t, userFile, "tenant: a\n")
	if got := w.mustLoad(t).String("mode"); got != "loose" {
		t.Errorf("mode = %q, want the administrator's", got)
	}
}

func TestUnreadableFiles(t *testing.T) {
	w := newWorld(t)
	w.write(t, systemFile+"/x", "") // a directory in the file's place
	w.write(t, userFile, strings.Repeat("#", maxFile+1))
	_, got := w.load(t)
	want := []string{"DIR/" + systemFile + ": is a directory", "DIR/" + userFile + ": longer than 1MiB"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestErr(t *testing.T) {
	one := Problem{Key: "mode", Source: Source{Flag, "--mode"}, Err: errors.New("unknown key")}
	if err := (Problems{}).Err(); err != nil {
		t.Errorf("Err of nothing = %v", err)
	}
	if got, want := (Problems{one}).Err().Error(), "configuration: flag --mode: mode: unknown key"; got != want {
		t.Errorf("Err of one = %q, want %q", got, want)
	}
	want := "the configuration has 2 problems:\n  flag --mode: mode: unknown key\n  flag --mode: mode: unknown key"
	if got := (Problems{one, one}).Err().Error(); got != want {
		t.Errorf("Err of two = %q, want %q", got, want)
	}
}

// TestLoadReadWithoutEnd reads a FIFO without a writer; a file server that does not
// answer looks the same.
func TestLoadReadWithoutEnd(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := readWithin(file)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "no answer within 10s: check that it is a file") {
			t.Errorf("got %v, want an error that says what hangs", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the read does not end")
	}
	if f, err := os.OpenFile(file, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil { // ends the reader
		f.Close()
	}
}
