package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// Bounds of a question.
const (
	MaxCalls      = 16
	MaxOperations = 8       // named of one call
	maxQuestion   = 1 << 20 // bytes of its file
)

// A Question is about the calls of one frame that wait for an approval. Its
// texts are redacted, and were chosen by the agent, its server, and by any user
// who may write to the directory.
type Question struct {
	// ID matches ^[A-Za-z0-9_-]{1,64}$. It is the record_id of the first call
	// that is asked about.
	ID                                    string
	Asked, Expires                        time.Time // UTC, to the microsecond
	SessionID, Host, User, Server, Client string    // Server is the name that the server gave itself, else the base name of its command
	PID                                   int       // of the proxy
	ServerKey                             string    // 16 hexadecimal digits: a digest of the server's command line
	Calls                                 []Call    // at most MaxCalls
	More                                  int       // calls that were left out

	// Approvers and SameUser say whose answers count, as in Config. Ask sets
	// them.
	Approvers []string
	SameUser  bool

	// Owner is the user who owns the question's file: whoever runs the proxy.
	// Digest is that of the file. They are set where a question is read; Give
	// puts the digest into the answer, so that it holds for no other question.
	Owner, Digest string
	// Abandoned is whether its proxy has ended without an end to the question, as
	// one that was killed: an answer has no effect. It is set where a question
	// is read.
	Abandoned bool

	held bool // its proxy has locked its file
	uid  int  // of the owner
	size int  // bytes of its file
}

// A Call is a call that waits.
type Call struct {
	CallNo                             uint64
	Method, Tool, Target, Rule, Reason string
	Args, Risk, Detections             audit.JSON // as in the record: redacted

	// Operations are the other tools in the call that need an approval, at most
	// MaxOperations; MoreOperations are those that were left out.
	Operations     []string
	MoreOperations int
}

// Subject is what an approval for longer than once is about: the tool, or the
// method where it is not tools/call.
func (c *Call) Subject() string {
	if c.Tool == "" {
		return c.Method
	}
	return c.Tool
}

// fileQuestion is a question as its file has it.
type fileQuestion struct {
	ID        string     `json:"id"`
	Asked     time.Time  `json:"asked"`
	Expires   time.Time  `json:"expires"`
	SessionID string     `json:"session_id,omitempty"`
	Host      string     `json:"host,omitempty"`
	User      string     `json:"user,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Server    string     `json:"server,omitempty"`
	Client    string     `json:"client,omitempty"`
	ServerKey string     `json:"server_key,omitempty"`
	Calls     []fileCall `json:"calls"`
	More      int        `json:"more,omitempty"`
	Approvers []string   `json:"approvers,omitempty"`
	SameUser  bool       `json:"same_user"`
	Locked    bool       `json:"locked,omitempty"` // the file, while the proxy waits; older proxies did not
}

type fileCall struct {
	CallNo     uint64          `json:"call_no"`
	Method     string          `json:"method,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Target     string          `json:"target,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Risk       json.RawMessage `json:"risk,omitempty"`
	Detections json.RawMessage `json:"detections,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Reason     string          `json:"reason,omitempty"`

	Operations     []string `json:"operations,omitempty"`
	MoreOperations int      `json:"more_operations,omitempty"`
}

// encode returns the file of a question. It leaves calls out if there are too
// many of them.
func (q *Question) encode() ([]byte, error) {
	f := fileQuestion{ID: q.ID, Asked: q.Asked.UTC().Truncate(time.Microsecond), Expires: q.Expires.UTC().Truncate(time.Microsecond),
		SessionID: q.SessionID, Host: q.Host, User: q.User, PID: q.PID, Server: q.Server, Client: q.Client, ServerKey: q.ServerKey,
		More: q.More, Approvers: q.Approvers, SameUser: q.SameUser, Locked: q.held}
	for i := range q.Calls {
		c := &q.Calls[i]
		f.Calls = append(f.Calls, fileCall{CallNo: c.CallNo, Method: c.Method, Tool: c.Tool, Target: c.Target, Rule: c.Rule, Reason: c.Reason,
			Args: raw(c.Args), Risk: raw(c.Risk), Detections: raw(c.Detections), Operations: c.Operations, MoreOperations: c.MoreOperations})
	}
	for {
		if n := len(f.Calls) - MaxCalls; n > 0 {
			f.Calls, f.More = f.Calls[:MaxCalls], f.More+n
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text) // it ends the text with a line feed
		e.SetEscapeHTML(false)
		if err := e.Encode(&f); err != nil {
			return nil, err
		}
		if text.Len() <= maxQuestion {
			return text.Bytes(), nil
		}
		if len(f.Calls) < 2 {
			return nil, fmt.Errorf("it has %d bytes, at most %d are possible", text.Len(), maxQuestion)
		}
		f.More += len(f.Calls) - len(f.Calls)/2
		f.Calls = f.Calls[:len(f.Calls)/2]
	}
}

func raw(v audit.JSON) json.RawMessage {
	if v == "" {
		return nil
	}
	return json.RawMessage(v)
}

// parseQuestion reads the file of a question. Members that it does not know are
// a newer proxy's. An error quotes nothing of the text.
func parseQuestion(text []byte) (*Question, error) {
	if !jsontext.Valid(text) {
		return nil, errors.New("it is not strict JSON")
	}
	var f fileQuestion
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, errors.New("it is not a question")
	}
	switch {
	case !validID(f.ID):
		return nil, errors.New("it has no valid id")
	case len(f.Calls) == 0 || len(f.Calls) > MaxCalls || f.More < 0:
		return nil, fmt.Errorf("it has %d calls, 1 to %d are possible", len(f.Calls), MaxCalls)
	case f.Asked.IsZero() || f.Expires.IsZero():
		return nil, errors.New("it has no times")
	case f.Asked.UTC().Year() > 9998 || f.Expires.UTC().Year() > 9998: // in another zone JSON cannot have them
		return nil, errors.New("its times are too late")
	case f.ServerKey != "" && !validKey(f.ServerKey):
		return nil, errors.New("its server_key is not 16 hexadecimal digits")
	}
	if err := checkNames(f.Approvers); err != nil {
		return nil, err
	}
	q := &Question{ID: f.ID, Asked: f.Asked.UTC(), Expires: f.Expires.UTC(), SessionID: f.SessionID, Host: f.Host, User: f.User, PID: f.PID,
		Server: f.Server, Client: f.Client, ServerKey: f.ServerKey, More: f.More, Approvers: f.Approvers, SameUser: f.SameUser, held: f.Locked, Digest: digest(text)}
	for _, c := range f.Calls {
		q.Calls = append(q.Calls, Call{CallNo: c.CallNo, Method: c.Method, Tool: c.Tool, Target: c.Target, Rule: c.Rule, Reason: c.Reason,
			Args: audit.JSON(c.Args), Risk: audit.JSON(c.Risk), Detections: audit.JSON(c.Detections),
			Operations: c.Operations[:min(len(c.Operations), MaxOperations)], MoreOperations: c.MoreOperations + max(len(c.Operations)-MaxOperations, 0)})
	}
	return q, nil
}

// detectors returns the words of a call's detections, sorted.
func (c *Call) detectors() ([]string, error) {
	list, err := audit.ParseDetections(c.Detections)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, d := range list {
		words = append(words, d.Detector)
	}
	slices.Sort(words)
	return slices.Compact(words), nil
}

// levels are the words for how great a risk is, the lowest first.
var levels = [...]string{"", "low", "medium", "high", "critical"}

// Covers reports whether an approval of a call of one level of risk is one of a call of
// another: a server may list a tool again as one that does more. An approval without
// a level covers all.
func Covers(approved, level string) bool {
	return approved == "" || CompareLevels(level, approved) <= 0
}

// CompareLevels compares two levels of risk, as package cmp does.
func CompareLevels(a, b string) int {
	return slices.Index(levels[:], a) - slices.Index(levels[:], b)
}

// level returns the level of the call's risk, the lowest where the question shows none.
func (c *Call) level() string {
	var risk struct{ Level string }
	if err := json.Unmarshal([]byte(c.Risk), &risk); err != nil || !slices.Contains(levels[1:], risk.Level) {
		return levels[1]
	}
	return risk.Level
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// validID reports whether a text may be the id of a question, and so a part of
// the name of a file.
func validID(id string) bool {
	if len(id) == 0 || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		if !plain(id[i]) {
			return false
		}
	}
	return true
}

func plain(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

func validKey(key string) bool {
	for i := range len(key) {
		if c := key[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(key) == 16
}
