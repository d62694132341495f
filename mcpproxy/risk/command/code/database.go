package code

import (
	"strings"

	"auditproxy/internal/lazyregexp"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// Database judges the statements that a client of a database gets.
func Database(s *shell.Shell, name string, args []shell.Field, in shell.Stream) {
	var statements []shell.Field
	files := false
	var short, long string
	switch name {
	case "cypher-shell":
		short, long = "aupdfP", "address username password database file param format encryption"
	case "psql", "usql", "pgcli", "duckdb":
		short, long = "cdhpUfvLoPFRT", "command dbname host port username file set variable output"
	case "mysql", "mariadb", "mycli":
		short, long = "eDhPuSo", "execute database host port user socket password init-command"
	case "clickhouse-client", "clickhouse":
		short, long = "qhud", "query host port user password database queries-file multiquery format"
	default:
		short, long = "qQeEcUPSdihnaupf", "execute eval query command cmd host port user password database file url"
	}
	p := shell.ParseFlags(args, short, long)
	if p.Help {
		return
	}
	for _, o := range p.Values {
		switch {
		case shell.OneOf(o.Name, "c", "e", "q", "Q") || shell.Listed("command execute eval query cmd init-command execute-query", o.Name):
			statements = append(statements, o.Value)
		case o.Name == "f" || o.Name == "file":
			files = true
		}
	}
	switch name {
	case "redis-cli", "valkey-cli", "keydb-cli":
		redis(s, &p)
		if in.Kind == shell.Text {
			for line := range strings.Lines(in.Text) {
				q := shell.Flags{}
				for w := range strings.FieldsSeq(line) {
					q.Args = append(q.Args, shell.Field{Text: w})
				}
				redis(s, &q)
			}
		}
		return
	case "mongo", "mongosh":
		if in.Kind == shell.Text {
			statements = append(statements, shell.Field{Text: in.Text})
		}
		for _, st := range statements {
			if newSource(s, st.Text).has(mongoDrop) {
				s.Add(detector.SQLUnfiltered)
			}
			if shell.HasAny(st.Text, "$where", "$function", "$accumulator", "mapReduce") {
				s.Add(detector.PrivilegeEscalation) // code that the server runs
			}
			Judge(s, "node", st.Text)
		}
		return
	case "cypher-shell":
		for _, a := range p.Args {
			Cypher(s, a.Text)
		}
		if in.Kind == shell.Text {
			Cypher(s, in.Text)
		}
		return
	case "sqlite3", "sqlite", "litecli":
		file, _, _ := strings.Cut(strings.TrimPrefix(p.Arg(0), "file:"), "?")
		if place.IsCredential(file) {
			s.Add(detector.CredentialRead)
		}
		for i, a := range args {
			if a.Text == "-cmd" && i+1 < len(args) {
				statements = append(statements, args[i+1])
			}
		}
		if len(p.Args) > 1 {
			statements = append(statements, p.Args[1:]...)
		}
	case "duckdb", "bq", "clickhouse", "influx", "cockroach":
		if p.Has("dry_run") {
			return
		}
		statements = append(statements, p.Args...)
		if name == "bq" && p.Any("rm") {
			s.Add(detector.Teardown)
		}
		if name == "influx" && p.Any("delete") {
			s.Add(detector.SQLUnfiltered)
		}
		for i, a := range args {
			if shell.OneOf(a.Text, "-execute", "--query", "-q", "-e", "--execute") && i+1 < len(args) {
				statements = append(statements, args[i+1])
			}
		}
	}
	for _, st := range statements {
		SQL(s, strings.ReplaceAll(st.Text, shell.Hole, "x"))
	}
	if !files && len(statements) == 0 || in.Kind == shell.Text {
		switch in.Kind {
		case shell.Text:
			SQL(s, in.Text)
		case shell.Unknown:
			s.Add(in.From & detector.RemoteExec)
		case shell.File:
			if in.From&detector.RemoteExec != 0 {
				s.Add(detector.RemoteExec)
			}
		}
	}
	if file, ok := p.Value("f", "file"); ok {
		if st := s.Open(file); st.Kind == shell.Text {
			SQL(s, st.Text)
		} else if file.Text == "-" && in.Kind == shell.Text {
			SQL(s, in.Text)
		}
	}
}

var mongoDrop = pattern{lazyregexp.New(`\.(?:dropDatabase|drop|dropCollection|dropUser|dropIndexes)\s*\(|\.(?:remove|deleteMany)\s*\(\s*(?:\{\s*\}\s*)?\)|\bshutdownServer\b|\bshutdown["']?\s*:\s*(?:1|true)|\b(?:dropDatabase|drop)["']?\s*:\s*(?:1|["'])|["']?\$out["']?\s*:|\.updateMany\s*\(\s*\{\s*\}`), 2}

// redisSetting judges a setting of Redis that decides what it writes, loads or lets in.
func redisSetting(s *shell.Shell, name, value string) {
	switch name {
	case "dir", "dbfilename":
		s.Add(detector.Persistence) // the next save writes a file of the caller's choice
	case "requirepass", "masterauth":
		if value == "" {
			s.Add(detector.ProtectionOff)
		}
	case "protected-mode":
		if value == "no" {
			s.Add(detector.ProtectionOff)
		}
	case "enable-module-command", "enable-debug-command", "enable-protected-configs":
		if value != "no" {
			s.Add(detector.ProtectionOff)
		}
	}
}

func redis(s *shell.Shell, p *shell.Flags) {
	if shell.In(strings.ToLower(p.Arg(0)), "get set exists type ttl echo publish lpush rpush sadd hget hset") {
		return // what follows is a key or a value
	}
	for i, a := range p.Args {
		switch strings.ToUpper(a.Text) {
		case "FLUSHALL", "FLUSHDB", "SHUTDOWN", "SWAPDB":
			s.Add(detector.SQLUnfiltered)
		case "DEL", "UNLINK":
			if i == 0 {
				s.Add(detector.SQLUnfiltered)
			}
		case "DEBUG", "SCRIPT", "FUNCTION", "CLUSTER":
			if shell.OneOf(strings.ToUpper(p.Arg(i+1)), "FLUSH", "SEGFAULT", "RESET", "FLUSHSLOTS") {
				s.Add(detector.SQLUnfiltered)
			}
		case "CONFIG":
			if strings.EqualFold(p.Arg(i+1), "set") {
				redisSetting(s, strings.ToLower(p.Arg(i+2)), strings.ToLower(p.Arg(i+3)))
			}
			continue
		case "MODULE":
			if strings.HasPrefix(strings.ToUpper(p.Arg(i+1)), "LOAD") {
				s.Add(detector.PrivilegeEscalation)
			}
		case "SLAVEOF", "REPLICAOF":
			if p.Arg(i+2) != "" && !strings.EqualFold(p.Arg(i+1), "no") {
				s.Add(detector.SQLUnfiltered) // the other host's data replace all
			}
		case "MIGRATE":
			if i == 0 && p.Arg(2) != "" {
				s.Add(detector.Exfiltration)
			}
		case "ACL":
			if strings.EqualFold(p.Arg(i+1), "setuser") && p.Arg(i+3) != "" {
				s.Add(detector.Persistence)
			}
		case "EVAL":
			Judge(s, "lua", p.Arg(i+1))
			if shell.HasAny(p.Arg(i+1), "os.execute", "io.popen", "package.loadlib") {
				s.Add(detector.PrivilegeEscalation)
			}
			continue
		}
		if shell.HasAny(strings.ToUpper(a.Text), "FLUSHALL", "FLUSHDB") {
			s.Add(detector.SQLUnfiltered)
		}
		if i == 0 {
			continue
		}
		break
	}
}
