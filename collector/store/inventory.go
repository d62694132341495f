package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// An Effect is a path that panes were piped to, or a variable that was set, over
// all time: by calls of their own and inside batches. Retention removes what one
// user did on one host when it is all too old, so until then the counts and the
// first time are also of records that it removed.
type Effect struct {
	Name       string    `ch:"name"`
	Scope      string    `ch:"scope"` // of a variable: global, session, window, pane
	Tools      []string  `ch:"tools"`
	FirstTS    time.Time `ch:"first"`
	LastTS     time.Time `ch:"last"`
	Allowed    uint64    `ch:"allowed_n"` // operations that reached the server
	Refused    uint64    `ch:"refused_n"` // by the proxy, before the server
	Failed     uint64    `ch:"failed_n"`  // of those allowed
	Least      bool      `ch:"least"`     // there may be more: of one user on a host, 65536 are counted
	Who        []string  `ch:"who"`       // user@host
	Clients    []string  `ch:"clients"`
	LastRecord uuid.UUID `ch:"last_id"`
	Parties    uint64    `ch:"parties"` // that Who is the first of

	Hash uint64 `ch:"name_hash"` // of Name and Scope
}

// Place returns the effect's place in a list.
func (e Effect) Place() EffectPlace { return EffectPlace{e.LastTS, e.Hash} }

// An EffectKind is a sort of Effect.
type EffectKind string

// The kinds of effects.
const (
	Pipe     EffectKind = "pipe"
	Variable EffectKind = "variable"
)

// An EffectFilter chooses effects; zero values choose all.
type EffectFilter struct {
	Kind EffectKind // Required.
	Name string     // a part of the name, in any case
	Host string
	User string

	After *EffectPlace // only those behind it
}

// An EffectPlace is a place in a list of effects. What is seen again moves to the
// list's start, and no other one's place changes.
type EffectPlace struct {
	LastTS time.Time
	Hash   uint64
}

// maxEffects is of how many of the latest rows, which are of one user on a host
// each, a list of effects is.
const maxEffects = 1_000_000

// Effects returns up to limit effects, those seen last first.
func (r *Reader) Effects(ctx context.Context, f EffectFilter, limit int) ([]Effect, error) {
	where, a := "effect = {effect:String}", args{"effect": string(f.Kind), "limit": limit, "most": maxEffects}
	for _, c := range []struct{ value, name, condition string }{
		{f.Name, "name", "positionCaseInsensitiveUTF8(name, {name:String}) > 0"},
		{f.Host, "host", "host = {host:String}"},
		{f.User, "user", "user = {user:String}"},
	} {
		if c.value != "" {
			where += " AND " + c.condition
			a[c.name] = c.value
		}
	}
	behind := "1"
	if f.After != nil {
		const last = "fromUnixTimestamp64Micro({last:Int64}, 'UTC')"
		behind = "(max(last_ts) < " + last + " OR max(last_ts) = " + last + " AND id > {hash:UInt64})"
		a["last"], a["hash"] = micros(f.After.LastTS), f.After.Hash
	}
	// An agent makes any number of names: those of the page are chosen by their hashes.
	return ask[Effect](ctx, r, "what was changed", `
		SELECT name, scope, min(first_ts) AS first, max(last_ts) AS last,
		       sum(length(allowed_ids)) AS allowed_n, sum(length(refused_ids)) AS refused_n, sum(length(failed_ids)) AS failed_n,
		       toBool(max(greatest(length(allowed_ids), length(refused_ids))) >= 65536) AS least,
		       arraySort(groupUniqArray(8)(concat(user, '@', host))) AS who, uniqExact(user, host) AS parties,
		       arraySort(groupUniqArrayIf(8)(client_id, client_id != '')) AS clients,
		       arraySort(groupUniqArray(8)(tool)) AS tools,
		       max(last_record).2 AS last_id, sipHash64(name, scope) AS name_hash
		FROM effect_states FINAL
		PREWHERE `+where+` AND sipHash64(name, scope) IN (
			SELECT id FROM (SELECT sipHash64(name, scope) AS id, last_ts FROM effect_states WHERE `+where+` ORDER BY last_ts DESC LIMIT {most:UInt32})
			GROUP BY id HAVING `+behind+` ORDER BY max(last_ts) DESC, id LIMIT {limit:UInt32})
		GROUP BY name, scope ORDER BY last DESC, name_hash`, a)
}

// A Definition is a server's declaration of a tool, as far as records have it.
type Definition struct {
	Server      string    `ch:"server_name"`
	Version     string    `ch:"server_version"`
	Tool        string    `ch:"tool"`
	Hash        string    `ch:"tool_hash"` // SHA-256 of the definition, hex; "": it was never listed
	Tier        string    `ch:"tier"`
	Annotations string    `ch:"annotations"` // JSON
	FirstTS     time.Time `ch:"first"`
	LastTS      time.Time `ch:"last"`
	Called      bool      `ch:"called"` // else it was only seen inside other calls
}

// The most definitions of an inventory. A server, or a producer in its name, can
// list a tool with another definition for each call: of one with more than
// maxCandidates, those to choose from are any of them, and the last maxOfTool are
// shown.
const (
	maxDefinitions = 5000
	maxOfTool      = 50
	maxCandidates  = 1000
)

// Definitions returns the inventory: by server and tool, oldest definition
// first. An operation inside a call has no definition there, so it has a row
// only if the tool was never called directly. An agent can use any number of
// names: more means that some are left out, first those that no server listed
// and that were not used for longest.
func (r *Reader) Definitions(ctx context.Context) (list []Definition, more bool, err error) {
	// Rows are read once, and most of them are dropped as they are read: sorting
	// or grouping all would need memory for them.
	all, err := ask[Definition](ctx, r, "tools", `
		SELECT server_name, server_version, tool, tool_hash, tier, annotations, min(first_ts) AS first, max(last_ts) AS last, part = 'call' AS called
		FROM (
			SELECT * FROM (
				SELECT server_name, server_version, tool, part, tool_hash, tier, annotations, first_ts, last_ts FROM definition_states FINAL
				LIMIT {candidates:UInt32} BY server_name, server_version, tool, part)
			ORDER BY tool_hash != '' DESC, last_ts DESC LIMIT {rows:UInt32})
		GROUP BY server_name, server_version, tool, tool_hash, tier, annotations, called
		ORDER BY tool_hash != '' DESC, last DESC, sipHash64(server_name, server_version, tool, tool_hash, tier, annotations)
		LIMIT {each:UInt32} BY server_name, server_version, tool, called LIMIT {limit:UInt32}`,
		args{"limit": maxDefinitions + 1, "each": maxOfTool + 1, "candidates": maxCandidates, "rows": 4 * maxDefinitions})
	more = len(all) > maxDefinitions
	type tool struct{ server, version, name string }
	called, shown := map[tool]bool{}, map[tool]int{}
	for _, d := range all {
		called[tool{d.Server, d.Version, d.Tool}] = called[tool{d.Server, d.Version, d.Tool}] || d.Called
	}
	for _, d := range all { // the last ones first
		name := tool{d.Server, d.Version, d.Tool}
		if called[name] && !d.Called {
			continue
		}
		if shown[name]++; shown[name] > maxOfTool {
			more = true
			continue
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Definition) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Tool, b.Tool), a.FirstTS.Compare(b.FirstTS),
			strings.Compare(a.Version, b.Version), strings.Compare(a.Hash, b.Hash))
	})
	return list, more, err
}
