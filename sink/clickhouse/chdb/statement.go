//go:build linux || darwin

package chdb

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// A statement is a client's statement.
type statement struct {
	sql    string // the text to run; without FORMAT if it reads or its data follows
	format string // the client's own; "" for none
	kind   kind

	canonical string  // the engine's own spelling of one that reads
	tokens    []token // of canonical
}

type kind uint8

const (
	changes kind = iota // anything but the following
	inserts             // an INSERT whose data follows
	selects             // its answer can be streamed
	shows               // it reads, but its answer comes at once
)

// A parser is the engine's own parser. Only a conn has one.
type parser interface {
	// classify reports false, or no statement, if the engine could not tell.
	classify(text string) (class classification, ok bool)
	// canonical returns the engine's spelling of text, or why there is none.
	canonical(text string) (string, error)
}

// parse classifies text with the engine. Statements that read are replaced by
// the engine's own spelling: one word for each construct, no comments, names
// without escapes, so that nothing can be disguised. A writer has nothing to
// disguise, and the spelling takes as long as a short statement, so a writer's
// SELECT is run as it is, unless a FORMAT may have to be taken out of it.
//
// dataFollows means that the client sends more than text.
func parse(p parser, text string, dataFollows bool, role Role) (statement, error) {
	class, ok := p.classify(text)
	if !ok || class.statements == 0 {
		if _, err := p.canonical(text); err != nil {
			return statement{}, err // where it cannot be understood, or that it is empty
		}
		// It can be understood, so the engine had no memory just now.
		if class, ok = p.classify(text); !ok || class.statements == 0 {
			return statement{}, exceptionf(codeUnknown, "the engine did not classify the statement: repeat it")
		}
	}
	switch {
	case class.statements > 1:
		return statement{}, exceptionf(codeSyntax, "want one statement, got %d", class.statements)
	case class.class != classRead && !(class.class == classChange && dataFollows):
		return statement{sql: text}, nil
	case class.class == classRead && role == Writer && isSelect.MatchString(text) && !mayEndOtherwise.MatchString(text):
		return statement{sql: text, kind: selects}, nil
	}
	canonical, err := p.canonical(text)
	if err != nil {
		return statement{}, err
	}
	tokens := tokenize(canonical)
	if len(tokens) == 0 { // it was ended because its client is gone, for which the library has no error
		return statement{}, exceptionf(codeCancelled, "the statement was ended")
	}
	st := statement{sql: text, canonical: canonical, tokens: tokens}
	st.splitFormat()
	switch {
	case class.class == classChange:
		// Data in the text would be missing from the canonical form.
		trimmed := strings.TrimRight(text, " \t\r\n;")
		if tokens[0].text != "INSERT" || st.format == "" || !strings.HasSuffix(trimmed, st.format) {
			st = statement{sql: text}
			break
		}
		st.kind = inserts
	case tokens[0].text == "SELECT" || tokens[0].text == "WITH" || tokens[0].text == "(":
		st.kind = selects
	default:
		st.kind = shows
	}
	return st, nil
}

var (
	isSelect        = regexp.MustCompile(`(?i)^\s*SELECT\b`)
	mayEndOtherwise = regexp.MustCompile(`(?i)\bFORMAT\b|;`)
)

// canonical returns the engine's own spelling of text.
func (c *conn) canonical(text string) (string, error) {
	s, err := c.stream("SELECT formatQuerySingleLine({text:String})", "RawBLOB", []param{{"text", escapeTSV(text)}})
	if err != nil {
		return "", withoutScope(err)
	}
	defer s.close()
	var out []byte
	err = s.each(func(data []byte) error {
		out = append(out, data...)
		return nil
	})
	return string(out), withoutScope(err)
}

// scope is the part of an error message about the statement wrapped around
// the client's.
var scope = regexp.MustCompile(`(?s): In scope SELECT formatQuerySingleLine\(.*\)(\. \([A-Z_]+\)\s*)$`)

func withoutScope(err error) error {
	var e *exception
	if errors.As(err, &e) {
		return &exception{e.code, scope.ReplaceAllString(e.text, "$1")}
	}
	return err
}

var tsvEscapes = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

func escapeTSV(s string) string { return tsvEscapes.Replace(s) }

// splitFormat takes FORMAT out of the statement: the engine gets the format
// separately, so that the answer has the expected format.
func (st *statement) splitFormat() {
	depth := 0
	for i, t := range st.tokens {
		switch {
		case t.text == "(" || t.text == "[" || t.text == "{":
			depth++
		case t.text == ")" || t.text == "]" || t.text == "}":
			depth--
		case depth == 0 && t.text == "FORMAT" && i+1 < len(st.tokens) && st.tokens[i+1].word &&
			(i+2 == len(st.tokens) || st.tokens[i+2].text == "SETTINGS"):
			st.format = st.tokens[i+1].text
			st.sql = strings.TrimSpace(st.canonical[:t.at]) + st.canonical[st.tokens[i+1].end:]
			return
		}
	}
	st.sql = st.canonical
}

// forbidden are functions that reach beyond the database, though readonly
// lets them through.
var forbidden = map[string]string{
	"file":             "reads files of this machine",
	"catboostEvaluate": "reads files of this machine",
	"eval":             "runs text as a statement",
	"aiClassify":       "sends data to other machines",
	"aiEmbed":          "sends data to other machines",
	"aiExtract":        "sends data to other machines",
	"aiGenerate":       "sends data to other machines",
	"aiTranslate":      "sends data to other machines",
	"AIClassify":       "sends data to other machines",
	"AIExtract":        "sends data to other machines",
	"AIGenerate":       "sends data to other machines",
	"AITranslate":      "sends data to other machines",
}

// otherNames are table functions that read a table whose name may be in a text,
// where nothing here sees it. Lower case, which some need not be written in.
var otherNames = map[string]bool{
	"merge": true, "mergetreeindex": true, "mergetreeprojection": true, "mergetreeanalyzeindexes": true, "mergetreeanalyzeindexesuuid": true,
	"loop": true, "remote": true, "remotesecure": true, "cluster": true, "clusterallreplicas": true,
}

// lettersTable has what could not become a record, so nothing redacted the
// columns in unredacted.
const lettersTable = "dead_letters"

var unredacted = map[string]bool{"raw": true, "error": true, "kafka_key": true, "payload_hash": true}

// readable returns an error unless a reader may run st. The engine's
// readonly = 1 comes on top of it.
func (st *statement) readable() error {
	if st.kind != selects && st.kind != shows {
		return exceptionf(codeReadonly, "a reader may only read")
	}
	describes := st.tokens[0].text == "DESCRIBE"
	letters := slices.ContainsFunc(st.tokens, func(t token) bool { return t.text == lettersTable })
	for i, t := range st.tokens {
		next, last := st.text(i+1), st.text(i-1)
		called := next == "(" || last == "APPLY" || last == "(" && st.text(i-2) == "APPLY"
		switch {
		case t.text == "SETTINGS" && !t.quoted && st.text(i+2) == "=":
			return exceptionf(codeReadonly, "a reader's statement may not have SETTINGS: in a subquery they lift every limit; send them beside the statement")
		case forbidden[t.text] != "" && called:
			return exceptionf(codeReadonly, "a reader may not call %s: it %s", t.text, forbidden[t.text])
		case otherNames[strings.ToLower(t.text)] && next == "(":
			return exceptionf(codeReadonly, "a reader may not call %s: name the tables", t.text)
		case t.text == "Identifier" && last == ":":
			return exceptionf(codeReadonly, "a reader's statement may not have names as parameters")
		case letters && (unredacted[t.text] || t.text == "*" || t.text == "COLUMNS"):
			return exceptionf(codeReadonly, "a reader may name the other columns of %s only, because nothing redacted raw, error, kafka_key and payload_hash: use auditcollector dead-letters", lettersTable)
		case t.text == "(" && describes:
			return exceptionf(codeReadonly, "a reader may describe tables by their names only")
		case t.text == "default" && next == ".":
			return exceptionf(codeReadonly, "a reader may not use the database default: its tables are files of this machine")
		}
	}
	return nil
}

// text returns the text of token i, "" if there is none.
func (st *statement) text(i int) string {
	if i < 0 || i >= len(st.tokens) {
		return ""
	}
	return st.tokens[i].text
}

// A token is a piece of a canonical statement.
type token struct {
	text    string // a quoted name without its quotes; for a string only its quote
	at, end int    // its position
	word    bool   // a name or keyword
	quoted  bool   // a quoted name, which is not a keyword
}

// tokenize splits the output of formatQuery, which has no comments, and
// quotes escaped by backslashes.
func tokenize(s string) []token {
	var tokens []token
	for i := 0; i < len(s); {
		start := i
		t := token{at: start}
		switch c := s[i]; {
		case c == ' ' || c == '\n':
			i++
			continue
		case c == '\'' || c == '`' || c == '"':
			i = quoteEnd(s, i)
			t.text = s[start : start+1]
			if c != '\'' {
				t.word, t.quoted = true, true
				t.text = unquote(s[start:i])
			}
		case wordByte(c):
			for i < len(s) && wordByte(s[i]) {
				i++
			}
			t.word, t.text = true, s[start:i]
		default:
			i++
			t.text = s[start:i]
		}
		t.end = i
		tokens = append(tokens, t)
	}
	return tokens
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// quoteEnd returns the end of the quoted text that starts at i.
func quoteEnd(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return len(s)
}

// unquote returns a name without quotes and backslashes. An escape for a
// control character loses its meaning, but no function has one in its name.
func unquote(s string) string {
	if len(s) < 2 {
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' && i+1 < len(s)-1 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
