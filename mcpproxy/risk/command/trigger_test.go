package command

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
)

// TestGateHidesNothing judges every case also without the gate.
func TestGateHidesNothing(t *testing.T) {
	c := New(nil)
	r := rand.New(rand.NewPCG(5, 11))
	cases := append(readVectors(t), readCases(t)...)
	for range 2000 {
		cases = append(cases, commandVector{Command: generate(r)})
	}
	for _, v := range cases {
		if with, without := does(c, v.Command), judgeAll(v.Command); with != without {
			t.Errorf("with the gate %v, without it %v: %q", with.Words(), without.Words(), v.Command)
		}
	}
}

// TestCommandNamesAreTriggers reads the names of commands from the rules: each
// must open the gate.
func TestCommandNamesAreTriggers(t *testing.T) {
	// An ordinary use of these has to be cheap, and their rules need another word.
	other := strings.Fields(": true false wait . pwd echo printf cat bat batcat head tail tac nl strings od hexdump grep egrep fgrep rg cut uniq tr rev jq yq fold paste column pr expand unexpand " +
		"iconv envsubst dos2unix xz xzcat bzip2 bzcat zstd zstdcat lz4 gzip uudecode ccrypt age b64decode ag ack " +
		"shift unset - cmp diff wc file stat source-highlight look split csplit shuf zless most pg bzless base16 x add commit log " +
		// What these do is in a word of their arguments.
		"unzip dig nslookup host drill ping net net1 sc man git hub make gmake just docker kubectl k oc npm cargo gem yarn pnpm twine gh glab find gfind fd fdfind cp mv ln gcp gmv gln install run exec time which type set read less more start watch view at ip table service pass http https fetch mount sort awk gawk mawk nawk base64 base32 basenc openssl gpg gpg2 xxd gunzip zcat clone commit store cache hosts login master go brew apt aptitude dnf yum zypper snap flatpak apk sysctl modprobe chattr depmod lastlog faillock visudo vipw ifconfig b2 mc pm op lima orb ts arch wait function local typeset readonly mail ninja un vi ed ex tmux byobu podman nerdctl docker-compose microk8s podman-compose kubecolor gmake batch rake Rscript apt-get mkdir ts-node R swift bb pip pip2 pip3 pkg xbps-remove nix-env guix port scoop tdnf microdnf eopkg yc exo juju ctr buildah skopeo colima cloudflared kn neon turso pscale appwrite cf tkn odo rosa airflow dvc wp drush nmcli defaults new-service cd pushd " +
		"java rustup nvm fnm asdf volta flox tlmgr stripe fastly circleci algolia unleash flipt ldcli splunk deck temporal azcopy confluent wandb newrelic pd gitlab-runner")
	names := 0
	var files []string
	for _, pattern := range []string{"*.go", "infra/*.go", "shell/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			switch fn.Name.Name {
			case "call", "tool", "builtin", "deletes", "system", "transfers", "TearsDown", "Windows", "wrapperOf":
			default:
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				s, ok := n.(*ast.SwitchStmt)
				if !ok {
					return true
				}
				if tag, ok := s.Tag.(*ast.Ident); !ok || tag.Name != "name" {
					return true
				}
				for _, c := range s.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						lit, ok := e.(*ast.BasicLit)
						if !ok {
							continue
						}
						name, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						if names++; !shell.OneOf(name, other...) && trigger.Scan(name) == 0 {
							t.Errorf("%s: no trigger word in %q", fn.Name.Name, name)
						}
					}
				}
				return true
			})
		}
	}
	if names < 300 {
		t.Errorf("only %d names found", names)
	}
}

// TestScanIsLinear reads texts for which a scan that looks ahead for each byte
// would take an hour.
func TestScanIsLinear(t *testing.T) {
	for _, unit := range []string{">", "> ", "<", "{", "'", "a>", "\\", "(", "=", "! "} {
		trigger.Scan(strings.Repeat(unit, 1<<20/len(unit)))
	}
}

func TestOrdinaryTextCostsNothing(t *testing.T) {
	c := New(nil)
	for _, text := range []string{
		"ls -la", "C-c", "Enter", "q", "pwd", "cd ..", "echo hello", "git status", "git diff --stat", "cat README.md | head -20", "go build ./...", "pytest -q tests/unit",
		"grep -rn 'func main' .", "ls missing 2>/dev/null", "ps aux 2>&1", "y", "The tests pass, and the parser handles the empty list.",
	} {
		if n := testing.AllocsPerRun(10, func() { does(c, text) }); n != 0 {
			t.Errorf("%q costs %v allocations", text, n)
		}
	}
}
