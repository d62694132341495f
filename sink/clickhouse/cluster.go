package clickhouse

import (
	"fmt"
	"strings"
	"time"

	"auditproxy/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// A Cluster is how tables are replicated. With the zero value they are not.
type Cluster struct {
	schemas.Cluster

	Quorum        string        // replicas that must have an insert: auto, for the majority, or a number. Required.
	QuorumTimeout time.Duration // how long an insert waits for them. Required.

	// Sequential lets queries that must not miss a record read what a quorum has,
	// see DB.Settled. ClickHouse can do that only if the inserts into a table wait
	// for one another.
	Sequential bool
}

// IsIdentifier reports whether s can be the name of a database or cluster: up to
// 64 letters, digits and underscores.
func IsIdentifier(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && !('0' <= r && r <= '9') && !('a' <= r|0x20 && r|0x20 <= 'z')
	})
}

// IsPlaceInKeeper reports whether s can be a replica's path or name: printable
// ASCII without spaces, quotes and backslashes.
func IsPlaceInKeeper(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("'\"`\\", r) })
}

func (c Cluster) check() error {
	switch {
	case c.Name == "":
		return nil
	case !IsIdentifier(c.Name):
		return fmt.Errorf("cluster %q is not an identifier", c.Name)
	case !IsPlaceInKeeper(c.ReplicaPath), !IsPlaceInKeeper(c.ReplicaName):
		return fmt.Errorf("replica path %q or name %q cannot be one", c.ReplicaPath, c.ReplicaName)
	case c.Quorum == "" || c.QuorumTimeout < time.Second:
		return fmt.Errorf("cluster %q has no quorum, or no time for it", c.Name)
	}
	return nil
}

// write adds the settings of those who write.
func (c Cluster) write(s clickhouse.Settings) {
	if c.Name == "" {
		return
	}
	s["insert_quorum"] = c.Quorum
	s["insert_quorum_timeout"] = c.QuorumTimeout.Milliseconds()
	s["insert_quorum_parallel"] = 1
	if c.Sequential {
		s["insert_quorum_parallel"] = 0
	}
	// A statement is done when all replicas have done it.
	s["alter_sync"] = 2
	c.read(s)
	if c.Distributed {
		// An insert is answered when every shard has its rows.
		s["distributed_foreground_insert"] = 1
	}
}

// read adds the settings of those who read.
func (c Cluster) read(s clickhouse.Settings) {
	if c.Distributed {
		// A query within another is about the same sessions, and so the same shard.
		s["distributed_product_mode"] = "local"
	}
}
