package command

import (
	"strings"
	"testing"

	"auditproxy/mcpproxy/risk/detector"
)

// TestFilesOfCode checks the files that code of other languages writes and reads, and the
// rights that it takes.
func TestFilesOfCode(t *testing.T) {
	const (
		access = detector.Persistence
		reads  = detector.CredentialRead
		all    = detector.PermissionsAll
		root   = detector.PrivilegeEscalation
		sends  = detector.Exfiltration
	)
	d := New(nil)
	for text, want := range map[string]detector.Set{
		`python3 -c "open('/root/.bashrc', 'a').write(x)"`:                                               access,
		`python3 -c "open(file='/etc/cron.d/x', mode='w')"`:                                              access,
		"python3 - <<'E'\np = '/root/.zshrc'\nwith open(p, \"a\") as f:\n  f.write(x)\nE":                access,
		`python3 -c "open(os.path.join(home, '.ssh', 'authorized_keys'), 'a')"`:                          access,
		`python3 -c "open(os.path.join(home, '.config/autostart', 'x'), 'w')"`:                           access,
		"python3 - <<'E'\nhome = x\n(home / '.bashrc').write_text(y)\nE":                                 access,
		"python3 - <<'E'\np = Path.home() / '.profile'\np.write_text(y)\nE":                              access,
		`python3 -c "Path('/etc/crontab').open('a').write(x)"`:                                           access,
		`python3 -c "shutil.copy('x', '/etc/systemd/system/x.service')"`:                                 access,
		`python3 -c "open('/dev/sda', 'r+b').write(x)"`:                                                  detector.DeviceWrite,
		`python3 -c "open('/etc/audit/auditd.conf', 'w')"`:                                               detector.ProtectionOff,
		`node -e "fs.appendFileSync(os.homedir() + '/.bashrc', x)"`:                                      access,
		`node -e "fs.writeFile(path.join(home, '.git/hooks', 'pre-commit'), x, () => {})"`:               access,
		`node -e "fs.symlinkSync('x', '/etc/profile.d/x.sh')"`:                                           access,
		`node -e "fs.openSync('/etc/crontab', 'as')"`:                                                    access,
		`ruby -e "File.open('/root/.bashrc', 'a') { |f| f.puts x }"`:                                     access,
		`ruby -e "File.write '/etc/cron.d/x', y"`:                                                        access,
		`perl -e 'open(my $f, ">>", "/etc/crontab")'`:                                                    access,
		`perl -e 'open F, ">/etc/crontab"; print F 1'`:                                                   access,
		`perl -e 'open(F, "<", "/etc/crontab")'`:                                                         0,
		`php -r '$f = fopen("/etc/crontab", "a");'`:                                                      access,
		`php -r 'file_put_contents("/root/.bashrc", $x, FILE_APPEND);'`:                                  access,
		`python3 -c "print(open('/home/ann/.kube/config').read())"`:                                      reads,
		`python3 -c "shutil.copy('/home/ann/.netrc', 'x')"`:                                              reads,
		`python3 -c "print(Path('/root/.npmrc').read_text())"`:                                           reads,
		`node -e "fs.readFileSync('/root/.docker/config.json')"`:                                         reads,
		`ruby -e "puts File.read('/root/.pgpass')"`:                                                      reads,
		`perl -e 'open(F, "<", "/root/.pgpass")'`:                                                        reads,
		`php -r 'echo file_get_contents("/root/.git-credentials");'`:                                     reads,
		"python3 - <<'E'\nwith open('a', 'rb') as f:\n  body = f.read()\nrequests.post(u, data=body)\nE": sends,
		"python3 - <<'E'\ndef send(u, b):\n  r = urllib.request.Request(u, data=b)\n  urllib.request.urlopen(r)\nwith open('a') as f:\n  x = f.read()\nsend(u, x)\nE": sends,
		"python3 - <<'E'\ndef send(u, b):\n  requests.post(u, data=b)\nsend(u, open_it)\nwith open('a') as f:\n  x = f.read()\nprint(x)\nE":                           0,
		"python3 - <<'E'\nwith open('a') as f:\n  x = f.read()\nr = requests.post(u, json={'n': 1})\ndata = r.read()\nE":                                              0,
		"python3 - <<'E'\nr = urllib.request.urlopen(u)\ndata = r.read()\nrequests.post(v, data=data)\nE":                                                             0,
		`python3 -c "os.chmod('/tmp/x', 0o4755)"`:                                                  all,
		`python3 -c "os.chmod('/tmp/x', 0o755)"`:                                                   0,
		`python3 -c "os.setuid(0); f()"`:                                                           root,
		`perl -e 'POSIX::setuid(0); f()'`:                                                          root,
		`python3 -c "os.setuid(1000)"`:                                                             0,
		`python3 -c "open('/root/.bashrc').read()"`:                                                0,
		`python3 -c "open('notes.txt', 'w').write('see ~/.bashrc')"`:                               0,
		`python3 -c "open('b.txt', 'w').write(open('/etc/hosts').read())"`:                         0,
		`python3 -c "open(p, 'w').write(x)"`:                                                       0,
		"python3 - <<'E'\nold = '.bashrc'\nold == 1\nnew = 'x'\nopen(new, 'w').write(old)\nE":      0,
		`node -e "window.open('/etc/cron.d/x', '_blank')"`:                                         0,
		`node -e "fs.writeFileSync('package.json', fs.readFileSync('package.json.in', 'utf8'))"`:   0,
		"python3 - <<'E'\n" + strings.Repeat("open('a', 'w')\n", 600) + "open('/etc/cron.d/x')\nE": detector.Opaque,
	} {
		got := does(d, text)
		if want&detector.Opaque == 0 {
			got &^= detector.Opaque
		}
		if want == 0 && got != 0 || got&want != want {
			t.Errorf("%q: %v, want %v", text, got.Words(), want.Words())
		}
	}
}
