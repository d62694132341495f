package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/deploy/dev"
)

// The administrator's file counts only if no other user could have written it.
func TestWhoCouldWriteTheSystemFile(t *testing.T) {
	mode := func(name string, m os.FileMode) func(*testing.T, *world) {
		return func(t *testing.T, w *world) { must(t, os.Chmod(w.path(name), m)) }
	}
	link := func(target, name string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			must(t, os.RemoveAll(w.path(name)))
			must(t, os.Symlink(target, w.path(name)))
		}
	}
	with := func(list ...func(*testing.T, *world)) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			for _, change := range list {
				change(t, w)
			}
		}
	}
	write := func(name string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) { w.write(t, name, "tenant: a\n") }
	}
	owner := func(name string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			dev.Superuser(t)
			must(t, os.Lchown(w.path(name), 65533, 65533))
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *world)
		want   string // of the problem, "" for none
	}{
		{"nobody else", with(), ""},
		{"all may read it", with(mode("etc", 0o755), mode(systemFile, 0o644)), ""},
		{"its group", mode(systemFile, 0o664), `"DIR/etc/config.yaml" can be written by others than its owner (mode 0664): chmod go-w it`},
		{"all", mode(systemFile, 0o602), `"DIR/etc/config.yaml" can be written by others than its owner (mode 0602): chmod go-w it`},
		{"who may write the directory", mode("etc", 0o770), `"DIR/etc" can be written by others than its owner (mode 0770): chmod go-w it`},
		{"who may write above the directory", mode(".", 0o777), `"DIR" can be written by others than its owner (mode 0777): chmod go-w it`},
		{"not who shares a sticky directory", mode("etc", 0o777|os.ModeSticky), ""},
		{"another owner", owner(systemFile), `"DIR/etc/config.yaml" belongs to uid 65533, who is not root and could change it: chown it to root`},
		{"another owner of the directory", owner("etc"), `"DIR/etc" belongs to uid 65533, who is not root and could change it: chown it to root`},
		{"a link to a good file", with(write("etc/real"), link("./../etc/real", systemFile)), ""},
		{"a link to a bad file", with(write("etc/real"), mode("etc/real", 0o666), link("real", systemFile)), `"DIR/etc/real" can be written by others than its owner (mode 0666): chmod go-w it`},
		{"a link into a bad directory", with(write("tmp/real"), mode("tmp", 0o777), link("../tmp/real", systemFile)), `"DIR/tmp" can be written by others than its owner (mode 0777): chmod go-w it`},
		{"a directory that is a link into a bad one", with(write("tmp/etc/config.yaml"), mode("tmp", 0o777), link("tmp/etc", "etc")), `"DIR/tmp" can be written by others than its owner (mode 0777): chmod go-w it`},
		{"another owner's link", with(write("etc/real"), link("real", systemFile), owner(systemFile)), `"DIR/etc/config.yaml" belongs to uid 65533, who is not root and could change it: chown it to root`},
		{"a link to itself", link("config.yaml", systemFile), `leads through "DIR/etc/config.yaml", one of too many symbolic links`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, systemFile, "tenant: a\n")
			tt.change(t, w)
			v, problems := w.load(t)
			want := ""
			if tt.want != "" {
				want = "DIR/" + systemFile + ": " + tt.want
			}
			if got := strings.Join(problems, "\n"); got != want {
				t.Errorf("problems: %s\nwant: %s", got, want)
			}
			if tt.want != "" && v.String("tenant") != "" {
				t.Errorf("tenant = %q from a file that is refused", v.String("tenant"))
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A "~/" of the administrator is not the caller's, and the caller may name an
// enforced path in every way that leads to the same file, but to no other.
func TestEnforcedPath(t *testing.T) {
	home := UserHome()
	if home == "" {
		t.Fatal("the user of this test has no entry in the user database")
	}
	for _, tt := range []struct {
		name   string
		system string // store.dir there; DIR is the test's
		home   string // of the caller
		value  string // of the caller
		same   bool
	}{
		{"the same text", "DIR/a/store", "DIR/home", "DIR/a/store", true},
		{"a slash at the end", "DIR/a/store", "DIR/home", "DIR/a/store/", true},
		{"a detour", "DIR/a/store/", "DIR/home", "DIR/b/../a//./store", true},
		{"a link to it", "DIR/a/store", "DIR/home", "DIR/link/store", true},
		{"a link to it and more that is not there", "DIR/a/store/not/yet", "DIR/home", "DIR/link/store/not/yet", true},
		{"the administrator's link", "DIR/link/store", "DIR/home", "DIR/a/store", true},
		{"the caller's home", "DIR/home/store", "DIR/home", "~/store", true},
		{"another home of the caller", "DIR/home/store", "DIR/evil", "~/store", false},
		{"the administrator's ~ is not the caller's", "~/store", "DIR/evil", "DIR/evil/store", false},
		{"the same ~ in another home", "~/store", "DIR/evil", "~/store", false},
		{"the user's home", "~/store", "DIR/evil", filepath.Join(home, "store"), true},
		{"the same ~ in the user's home", "~/store", home, "~/store", true},
		{"another file", "DIR/a/store", "DIR/home", "DIR/b/store", false},
		{"the directory above", "DIR/a/store", "DIR/home", "DIR/a", false},
		{"another link", "DIR/a/store", "DIR/home", "DIR/elsewhere/store", false},
	} {
		for _, by := range []string{"variable", "flag", "file"} {
			t.Run(tt.name+" by "+by, func(t *testing.T) {
				w := newWorld(t)
				in := func(s string) string { return strings.ReplaceAll(s, "DIR", w.dir) }
				for _, dir := range []string{"a/store", "b/store", "home", "evil"} {
					must(t, os.MkdirAll(w.path(dir), 0o700))
				}
				must(t, os.Symlink("a", w.path("link")))
				must(t, os.Symlink("b", w.path("elsewhere")))
				w.write(t, systemFile, "store: {dir: "+in(tt.system)+"}\nenforce: [store.dir]\n")
				w.env = []string{"HOME=" + in(tt.home)}
				switch by {
				case "variable":
					w.env = append(w.env, "PROG_STORE_DIR="+in(tt.value))
				case "flag":
					w.flags = []string{"--store-dir", in(tt.value)}
				case "file":
					w.write(t, "c.yaml", "store: {dir: "+in(tt.value)+"}\n")
					w.flags = []string{"--config", w.path("c.yaml")}
				}
				v, problems := w.load(t)
				if same := len(problems) == 0; same != tt.same {
					t.Errorf("problems = %q", problems)
				}
				want := filepath.Clean(in(tt.system))
				if rest, ok := strings.CutPrefix(tt.system, "~/"); ok {
					want = filepath.Join(home, rest)
				}
				if got := v.String("store.dir"); got != want {
					t.Errorf("store.dir = %q, want the administrator's %q", got, want)
				}
			})
		}
	}
}
