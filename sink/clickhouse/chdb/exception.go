package chdb

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An exception is an error of ClickHouse.
type exception struct {
	code int
	text string // "Code: 60. DB::Exception: … (UNKNOWN_TABLE)"
}

func (e *exception) Error() string { return e.text }

// The codes of ClickHouse that this package returns itself.
const (
	codeBadArguments   = 36
	codeSyntax         = 62
	codeUnknownSetting = 115
	codeReadonly       = 164
	codeCancelled      = 394
	codeAuthentication = 516
	codeUnknown        = 1002
)

var codeNames = map[int]string{
	codeBadArguments:   "BAD_ARGUMENTS",
	codeSyntax:         "SYNTAX_ERROR",
	codeUnknownSetting: "UNKNOWN_SETTING",
	codeReadonly:       "READONLY",
	codeCancelled:      "QUERY_WAS_CANCELLED",
	codeAuthentication: "AUTHENTICATION_FAILED",
	codeUnknown:        "UNKNOWN_EXCEPTION",
}

func exceptionf(code int, format string, args ...any) error {
	return &exception{code, fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)", code, fmt.Sprintf(format, args...), codeNames[code])}
}

var leadingCode = regexp.MustCompile(`^Code: (\d+)\.`)

// newException parses the engine's message. The longest ones quote a whole
// query, and a client accepts 16 KiB.
func newException(text string) error {
	const longest = 12 << 10
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	if m := leadingCode.FindStringSubmatch(text); m != nil {
		if code, err := strconv.Atoi(m[1]); err == nil {
			return &exception{code, text}
		}
	}
	return exceptionf(codeUnknown, "%s", text)
}
