// Package verify checks copies of sessions' records by their evidence, in constant
// memory for each session: that no record was edited, deleted, inserted, moved or
// written in two versions, that every signature is by the right key, and that no
// session of a host is missing. It never calls what it did not check "ok".
//
// The files, from the top: verify, chain, ended, judge, session, short, signature, elsewhere,
// state, window, start, config, result, head.
package verify

import (
	"bytes"
	"slices"
	"sort"
	"sync"

	"auditproxy/schemas/evidence"
)

// A Checker checks the sessions of one copy. Its methods may be called
// concurrently.
type Checker struct {
	cfg   Config
	known map[string][]known // by session
	start map[string][]evidence.Entry
	bad   []Result // of checkpoints that are none

	mu      sync.Mutex
	ended   []*ended
	trusted map[string]bool
	hosts   map[hostKey]*hostKey
	last    map[*hostKey]moment // of a host's records
	why     string              // of the last session that could not be read: many have the same
	forgot  bool
}

// New returns a checker.
func New(cfg Config) *Checker {
	c := &Checker{cfg: cfg, known: map[string][]known{}, start: map[string][]evidence.Entry{}, trusted: map[string]bool{}, hosts: map[hostKey]*hostKey{}, last: map[*hostKey]moment{}}
	c.Trust(cfg.Hosts...)
	for _, p := range cfg.Checkpoints {
		k, err := readKnown(p)
		id, ok := evidence.SessionOf(k.Origin)
		if err != nil || !ok {
			c.bad = append(c.bad, Result{State: Unreadable, Note: "a checkpoint from " + p.From + " is of no session"})
			continue
		}
		c.known[id] = append(c.known[id], k)
	}
	for _, list := range c.known {
		sort.Slice(list, func(i, k int) bool { return list[i].Size < list[k].Size }) // as in chains.check
	}
	for _, e := range cfg.Starts {
		if id, ok := evidence.SessionOf(e.Origin); ok && e.HostSeq > 0 {
			c.start[id] = append(c.start[id], e)
		}
	}
	return c
}

// Trust adds verifier keys of hosts. Results of sessions change until Finish.
func (c *Checker) Trust(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		c.trusted[key] = true
	}
}

// Unknown returns the keys of hosts that were found so far, with a good signature of
// a session, and are not trusted, sorted.
func (c *Checker) Unknown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]bool{}
	for h := range c.hosts {
		if !c.trusted[h.key] {
			found[h.key] = true
		}
	}
	var keys []string
	for key := range found {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Forgot reports whether a record came again so late that it could not be compared
// with the first one. Then the copy is to be checked again, with Config.Remember.
func (c *Checker) Forgot() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forgot
}

// Session begins the check of a session. Each is begun once; sessions may be
// checked concurrently or in turns.
func (c *Checker) Session(id string, about About) *Session {
	return newSession(c.cfg, id, about, c.known[id], c.end)
}

func (c *Checker) end(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range s.starts {
		s.starts[i].shrink()
	}
	if s.why == c.why {
		s.why = c.why // one copy
	} else if s.why != "" {
		c.why = s.why
	}
	e := keep(s, func(h hostKey) *hostKey {
		if c.hosts[h] == nil {
			c.hosts[h] = &h
		}
		return c.hosts[h]
	})
	c.ended = append(c.ended, e)
	if last := c.last[e.host]; e.host != nil && bytes.Compare(s.last[:], last[:]) > 0 {
		c.last[e.host] = s.last
	}
	c.forgot = c.forgot || s.forgot
}

// Finish compares the sessions with each other and with what is known from
// elsewhere, and returns the results, in the order of the sessions' ids.
func (c *Checker) Finish() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	chains := &chains{c.cfg, c.ended, c.known, c.start, c.trusted, c.last}
	here := chains.here()
	missing := chains.check(here)
	r := Report{Results: make([]Result, 0, len(c.ended)+len(missing)+len(c.bad)), hosts: map[hostKey]int{}}
	for _, e := range c.ended {
		s := e.full()
		s.others = c.last[e.host]
		one := s.result(c.trusted)
		if s.about.Gone && one.State != Tampered {
			if here[e.id] != nil {
				r.host(s.hostName(), s.hostKey(), c.trusted[s.hostKey()]).Removed += one.Removed
			}
			continue
		}
		r.add(s.hostName(), s.hostKey(), c.trusted[s.hostKey()], one)
	}
	r.Results = merged(append(append(r.Results, missing...), c.bad...))
	r.hosts = nil // their places change
	sort.Slice(r.Hosts, func(i, k int) bool {
		a, b := &r.Hosts[i], &r.Hosts[k]
		return a.Name < b.Name || a.Name == b.Name && a.Key < b.Key
	})
	r.Exit = exitCode(r.Results)
	return r
}
