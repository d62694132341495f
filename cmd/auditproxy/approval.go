package main

import (
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"auditproxy/mcpproxy"
	"auditproxy/mcpproxy/approval"
	"auditproxy/redact"

	"go.uber.org/zap"
)

// An approvalConfig says how people are asked about calls.
type approvalConfig struct {
	channels []string // mcpproxy.ChannelClient and mcpproxy.ChannelFiles, in the order in which they are tried
	timeout  time.Duration
	files    approval.Config // of the channel files
}

// The bounds of approval.timeout.
const (
	minApprovalTimeout = 10 * time.Second
	maxApprovalTimeout = 10 * time.Minute
)

func (c *checker) approval(spoolDir string) approvalConfig {
	a := approvalConfig{
		timeout: c.Duration("approval.timeout"),
		files: approval.Config{
			Dir:       c.String("approval.dir"),
			Approvers: c.each("approval.approvers", checkApprover),
			SameUser:  c.Bool("approval.same_user"),
		},
	}
	a.channels = c.each("approval.channels", func(name string) error {
		if name != mcpproxy.ChannelClient && name != mcpproxy.ChannelFiles {
			return errors.New("want client or files")
		}
		return nil
	})
	for i, name := range a.channels {
		if slices.Contains(a.channels[:i], name) {
			c.Problem("approval.channels", "%q is listed twice", name)
		}
	}
	if len(a.channels) == 0 {
		c.Problem("approval.channels", "is empty: want client, files or both; a policy's action deny refuses calls without asking")
	}
	if !a.has(mcpproxy.ChannelFiles) {
		unused := func(key string, set bool) {
			if set {
				c.Problem(key, "would not be used: approval.channels has no files")
			}
		}
		unused("approval.dir", a.files.Dir != "")
		unused("approval.approvers", len(a.files.Approvers) > 0)
		unused("approval.same_user", !a.files.SameUser)
	}
	if a.timeout < minApprovalTimeout || a.timeout > maxApprovalTimeout {
		c.Problem("approval.timeout", "is %v, want 10s to 10m", a.timeout)
	}
	if a.files.Dir == "" && spoolDir != "" {
		a.files.Dir, a.files.Own = filepath.Join(spoolDir, "approvals"), true
	}
	return a
}

// open returns how a proxy in front of a server asks. With a directory that cannot
// be used the channel files cannot ask: calls that need it are refused.
func (a approvalConfig) open(red *redact.Redactor, command []string, log *zap.Logger) mcpproxy.Approval {
	key := red.NewHash(redact.Argument) // a command line may have secrets
	key.Write([]byte(strings.Join(command, "\x00")))
	v := mcpproxy.Approval{Channels: a.channels, Timeout: a.timeout, ServerKey: hex.EncodeToString(key.Sum(nil)[:8])}
	if a.has(mcpproxy.ChannelFiles) {
		dir, err := approval.Open(a.files)
		if err != nil {
			log.Error("nobody can be asked about calls through files", zap.Error(err))
		}
		v.Files = dir
	}
	return v
}

// has reports whether a channel is used.
func (a approvalConfig) has(channel string) bool { return slices.Contains(a.channels, channel) }

func checkApprover(name string) error {
	if name == "%" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r == 0x7f }) {
		return errors.New("want the name or id of a user, or %name of a group")
	}
	return nil
}
