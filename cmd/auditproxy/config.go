package main

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"auditproxy/cmd/internal/cli"
	"auditproxy/deploy/policies"
	"auditproxy/mcpproxy/policy"
	"auditproxy/redact"
	"auditproxy/redact/names"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

// minDrain is the least time for the end, in which the server's last output is
// read and the session is synced.
const minDrain = 100 * time.Millisecond

// A config is the configuration in force, checked.
type config struct {
	values cli.Values // what follows as written, with sources, and the logger's keys

	skipMethods []string      // methods not to record, besides the fixed list
	redact      redact.Config // without its key
	keyFile     string        // of the digest key; "" for the one in spoolDir

	spoolDir    string
	retainAge   time.Duration
	retainBytes int64
	consumer    string // "none", "kafka" or "collector"
	consumerSet bool   // the configuration sets it

	evidence        bool
	evidenceKeyFile string // "" for the one in spoolDir

	durability spool.Durability
	syncWait   time.Duration
	drain      time.Duration // at least minDrain

	allowUnrecorded bool // on_audit_failure: allow
	denyAmbiguous   bool // ambiguous: deny

	policyFile string // or preset:NAME; "" for none
	policyMode policy.Mode

	approval approvalConfig

	tiers   []string
	labels  []label
	tenant  string
	hideEnv []string
}

// A label is a name and a value that every record carries.
type label struct{ name, value string }

// proxyKeys returns all keys of this program, in the order of the help and of
// docs/configuration.md.
func proxyKeys(spoolDir string) []cli.Key {
	return append([]cli.Key{
		{Name: "record.skip_methods", Kind: cli.List, Usage: "more MCP methods not to record, in addition to ping, */list and the like"},
		{Name: "redact.profile", Kind: cli.Choice, Default: "strict", Choices: []string{"strict", "libtmux"}, Usage: "redaction rules"},
		{Name: "redact.digest", Kind: cli.Choice, Choices: []string{"hmac-sha256", "sha256"}, Usage: "form of digests; by default the first for strict, the second for libtmux"},
		{Name: "redact.key_file", Kind: cli.Path, Usage: "file with 32 bytes, to share one digest key between hosts; by default a key is created in the spool directory"},
		{Name: "redact.names", Kind: cli.List, Usage: "more names whose values are redacted"},
		{Name: "redact.clear_names", Kind: cli.List, Usage: "names excluded from redaction"},
		{Name: "spool.dir", Kind: cli.Path, Default: spoolDir, Varies: true, Usage: "directory of the records"},
		{Name: "spool.retain_age", Kind: cli.Duration, Default: "30d", Usage: "how long to keep records no consumer needs; 0: always"},
		{Name: "spool.retain_bytes", Kind: cli.Size, Default: "1GiB", Usage: "disk space for shipped records; beyond it the oldest are removed; 0: no limit"},
		{Name: "spool.consumer", Kind: cli.Choice, Choices: []string{"none", "kafka", "collector"}, Usage: "consumer that records wait for; by default kafka if there are brokers, otherwise one that has read any"},
		{Name: "evidence.enabled", Kind: cli.Bool, Default: "true", Usage: "sign the records, so that changes to them are found"},
		{Name: "evidence.key_file", Kind: cli.Path, Usage: "the host's private key, as package note has it, to share one between spool directories; by default one is created in the spool directory"},
		{Name: "durability", Kind: cli.Choice, Default: "intent", Choices: []string{"os", "interval", "intent", "always"}, Usage: "what to sync: nothing, everything each 50ms, the intent before its call, also the record before its answer"},
		{Name: "sync_wait", Kind: cli.Duration, Default: "20ms", Usage: "longest wait for the sync of an intent"},
		{Name: "drain", Kind: cli.Duration, Default: "500ms", Usage: "longest wait at the end, at least 100ms"},
		{Name: "on_audit_failure", Kind: cli.Choice, Default: "deny", Choices: []string{"deny", "allow"}, Usage: "what to do with calls that cannot be recorded"},
		{Name: "ambiguous", Kind: cli.Choice, Default: "record", Choices: []string{"record", "deny"}, Usage: "what to do with messages that two servers could read differently"},
		{Name: "policy.file", Kind: cli.Path, Prefix: policies.Prefix, Usage: "policy that decides about calls: a file, or preset:NAME; none: nothing is decided"},
		{Name: "policy.mode", Kind: cli.Choice, Choices: []string{"enforce", "observe"}, Usage: "apply decisions, or only record them; default: the mode in the policy, or enforce"},
		{Name: "approval.channels", Kind: cli.List, Default: "client,files", Usage: "where to ask about calls, the first that can: client, files"},
		{Name: "approval.dir", Kind: cli.Path, Varies: true, Usage: "directory of the channel files; default: approvals in spool.dir"},
		{Name: "approval.approvers", Kind: cli.List, Usage: "users, ids and %groups whose answers in files count; none: this user and root"},
		{Name: "approval.same_user", Kind: cli.Bool, Default: "true", Usage: "count answers in files of the user who runs the agent"},
		{Name: "approval.timeout", Kind: cli.Duration, Default: "120s", Usage: "longest wait for an answer, 10s to 10m; then the call is refused"},
		{Name: "tiers", Kind: cli.List, Usage: "more tags that name a tool's tier"},
		{Name: "labels", Kind: cli.List, Usage: "name=value pairs to add to every record"},
		{Name: "tenant", Kind: cli.Text, Usage: "tenant to name in every record"},
		{Name: "child.hide_env", Kind: cli.List, Usage: "variables to hide from the server"},
		{Name: "kafka.brokers", Kind: cli.List, Usage: "host:port of Kafka brokers; none: nothing is shipped"},
		{Name: "kafka.topic", Kind: cli.Text, Default: "mcp.audit.v1", Usage: "topic of the records"},
	}, slices.Concat(cli.TLSKeys("kafka.tls", "brokers"), cli.LoginKeys("kafka.sasl"), cli.LogKeys)...)
}

// load reads the configuration: the administrator's file, the user's, the
// environment, the flags. An error names all problems and is worth cli.ExitConfig.
func (a *app) load() (config, error) {
	cfg, problems := a.tryLoad()
	if err := problems.Err(); err != nil {
		return config{}, cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	return cfg, nil
}

// tryLoad is load for callers that handle each problem. The configuration is in
// force only without problems.
func (a *app) tryLoad() (config, cli.Problems) {
	v, problems := cli.Load(cli.Config{
		Program:    "auditproxy",
		Keys:       a.keys,
		SystemFile: a.systemConfig,
		SystemUID:  a.systemUID,
		Env:        a.env,
		Flags:      a.flags,
	})
	c := checker{cli.Checker{Values: v, Problems: problems}}

	cfg := config{
		values:      v,
		skipMethods: c.each("record.skip_methods", checkSkipped),
		redact: redact.Config{
			Profile:    profiles[v.String("redact.profile")],
			Digest:     digests[v.String("redact.digest")],
			Names:      v.List("redact.names"),
			ClearNames: v.List("redact.clear_names"),
		},
		keyFile:         v.String("redact.key_file"),
		spoolDir:        v.String("spool.dir"),
		retainAge:       v.Duration("spool.retain_age"),
		retainBytes:     v.Size("spool.retain_bytes"),
		consumer:        v.String("spool.consumer"),
		evidence:        v.Bool("evidence.enabled"),
		evidenceKeyFile: v.String("evidence.key_file"),
		durability:      durabilities[v.String("durability")],
		syncWait:        v.Duration("sync_wait"),
		drain:           max(v.Duration("drain"), minDrain),
		allowUnrecorded: v.String("on_audit_failure") == "allow",
		denyAmbiguous:   v.String("ambiguous") == "deny",
		policyFile:      v.String("policy.file"),
		policyMode:      policy.Mode(v.String("policy.mode")),
		tiers:           c.each("tiers", checkTier),
		labels:          c.labels(),
		tenant:          v.String("tenant"),
		hideEnv:         c.each("child.hide_env", checkVariable),
	}
	if cfg.consumerSet = cfg.consumer != ""; !cfg.consumerSet {
		cfg.consumer = "none"
		if len(v.List("kafka.brokers")) > 0 {
			cfg.consumer = "kafka"
		}
	}
	c.spool(cfg)
	c.redact(cfg)
	if cfg.evidenceKeyFile != "" && !cfg.evidence {
		c.Problem("evidence.key_file", "would not be used: evidence.enabled is false")
	}
	c.policy(cfg)
	cfg.approval = c.approval(cfg.spoolDir)
	c.Addresses("kafka.brokers")
	c.Topic("kafka.topic")
	c.TLS("kafka.tls")
	c.Login("kafka.sasl")
	return cfg, c.Problems
}

// The words of the configuration.
var (
	profiles     = map[string]redact.Profile{"strict": redact.Strict, "libtmux": redact.Libtmux}
	digests      = map[string]redact.Algorithm{"": redact.ByProfile, "hmac-sha256": redact.HMACSHA256, "sha256": redact.SHA256}
	durabilities = map[string]spool.Durability{"os": spool.OS, "interval": spool.Interval, "intent": spool.Intent, "always": spool.Always}
)

func checkSkipped(method string) error {
	if method == "tools/call" {
		return errors.New("tool calls are always recorded")
	}
	return nil
}

func checkTier(tier string) error {
	if len(tier) > 64 || strings.ContainsFunc(tier, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("want at most 64 printable ASCII characters")
	}
	return nil
}

func checkVariable(name string) error {
	if strings.Contains(name, "=") {
		return errors.New("want the name of a variable, without its value")
	}
	return nil
}

// maxText bounds a text that every record carries, in bytes.
const maxText = 256

func (c *checker) labels() []label {
	var labels []label
	seen := map[string]bool{}
	for _, s := range c.List("labels") {
		name, value, ok := strings.Cut(s, "=")
		switch {
		case !ok || name == "":
			c.Problem("labels", "%q: want name=value", s)
		case len(s) > maxText || !utf8.ValidString(s):
			c.Problem("labels", "%q: want at most %d bytes of UTF-8", name, maxText)
		case seen[name]:
			c.Problem("labels", "%q is listed twice", name)
		}
		seen[name] = true
		labels = append(labels, label{name, value})
	}
	if tenant := c.String("tenant"); len(tenant) > maxText || !utf8.ValidString(tenant) {
		c.Problem("tenant", "want at most %d bytes of UTF-8", maxText)
	}
	return labels
}

func (c *checker) spool(cfg config) {
	if cfg.spoolDir == "" {
		c.NoDirectory("spool.dir")
	}
	if cfg.syncWait == 0 {
		c.Problem("sync_wait", "must be more than 0; without a wait is durability: interval, without a bound durability: always")
	}
	if cfg.consumer == "kafka" && len(c.List("kafka.brokers")) == 0 {
		c.Problem("spool.consumer", "is kafka, but there are no kafka.brokers")
	}
}

func (c *checker) policy(cfg config) {
	if cfg.policyMode != "" && cfg.policyFile == "" {
		c.Problem("policy.mode", "would not be used: there is no policy.file")
	}
}

func (c *checker) redact(cfg config) {
	if cfg.keyFile != "" && !cfg.usesKey() {
		c.Problem("redact.key_file", "would not be used: redact.digest is sha256")
	}
	for _, name := range cfg.redact.ClearNames {
		switch {
		case !names.Listed(cfg.redact.Names, name):
		case c.Enforced("redact.names"):
			c.Problem("redact.clear_names", "%q is in redact.names, which %s enforces; remove it", name, c.Source("redact.names"))
		default:
			c.Problem("redact.clear_names", "%q is listed in both, here and in redact.names (%s); remove it from one", name, c.Source("redact.names"))
		}
	}
}

// usesKey reports whether digests are made with a key.
func (c config) usesKey() bool {
	return c.redact.Digest == redact.HMACSHA256 || c.redact.Digest == redact.ByProfile && c.redact.Profile == redact.Strict
}

// settings returns the values in force, with the defaults that depend on other
// settings filled in, without the credentials that red redacts.
func (c config) settings(red *redact.Redactor) []cli.Setting {
	clean := func(s string) string { return string(red.AppendText(nil, []byte(s))) }
	settings := c.values.Settings()
	for i, s := range settings {
		settings[i].Value = clean(s.Value)
		if list := slices.Clone(c.values.List(s.Key)); len(list) > 0 {
			// One by one: a credential must not reach into the next.
			for k, entry := range list {
				list[k] = clean(entry)
			}
			settings[i].Value = strings.Join(list, ",")
		}
		switch {
		case s.Key == "labels":
			var list []string
			for _, l := range c.labels {
				l = cleanLabel(l, red)
				list = append(list, l.name+"="+l.value)
			}
			settings[i].Value = strings.Join(list, ",")
		case s.Key == "drain":
			settings[i].Value = c.drain.String()
		case s.Key == "approval.dir":
			settings[i].Value = clean(c.approval.files.Dir)
		case s.Key == "spool.consumer" && (c.consumerSet || c.consumer != "none"): // else it is what has read any
			settings[i].Value = c.consumer
		case s.Key == "redact.digest" && c.usesKey():
			settings[i].Value = "hmac-sha256"
		case s.Key == "redact.digest":
			settings[i].Value = "sha256"
		}
	}
	return settings
}

// logger returns the log of this program's own running.
func (c config) logger(a *app) *zap.Logger { return cli.NewLogger(cleanWriter{a}, c.values) }

// queuedLogger is logger for messages logged while calls wait.
func (c config) queuedLogger(a *app) (*zap.Logger, *cli.LogQueue) {
	return cli.NewQueuedLogger(cleanWriter{a}, c.values)
}

// redactor returns the redactor of this configuration. With makeKey it makes
// the digest key on the first start; without, the key must exist.
func (c config) redactor(makeKey bool) (*redact.Redactor, error) {
	rc := c.redact
	var err error
	switch {
	case !c.usesKey():
	case c.keyFile != "":
		rc.Key, err = spool.ReadKey(c.keyFile)
	case makeKey:
		rc.Key, _, err = spool.LoadKey(c.spoolDir)
	default:
		rc.Key, err = spool.ReadKey(spool.KeyFile(c.spoolDir))
	}
	if err != nil {
		return nil, err
	}
	return redact.New(rc)
}

// cleanLabel is l without credentials, which may reach from its name into its
// value.
func cleanLabel(l label, red *redact.Redactor) label {
	name := string(red.AppendText(nil, []byte(l.name)))
	whole := string(red.AppendText(nil, []byte(l.name+"="+l.value)))
	if !strings.HasPrefix(whole, name+"=") {
		return label{name: whole}
	}
	return label{name, string(red.AppendNamed(nil, []byte(l.name), []byte(l.value)))}
}
