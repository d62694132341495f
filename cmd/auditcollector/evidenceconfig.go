package main

import (
	"path/filepath"
	"strings"
	"time"

	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/collector/translog"
)

// An evidenceConfig is what the configuration says of evidence.
type evidenceConfig struct {
	enabled   bool
	log       string // the directory of the log; "" for one in local.dir
	serve     bool
	witnesses []translog.Witness

	verifyEvery time.Duration // 0: never
	reverify    int           // records in each verification, see proof.JobConfig.Again
	trustFile   string
	hostKeyFile string // for the recovery of sessions; "" for the key in each spool
}

func (c evidenceConfig) dir(localDir string) string {
	if c.log == "" {
		return filepath.Join(localDir, "log")
	}
	return c.log
}

func (c *checker) evidence() evidenceConfig {
	e := evidenceConfig{enabled: c.Bool("evidence.enabled"), log: c.String("evidence.log"), serve: c.Bool("evidence.serve"),
		verifyEvery: c.Duration("evidence.verify_every"), reverify: int(c.Count("evidence.reverify")), trustFile: c.String("evidence.trust_file"), hostKeyFile: c.String("evidence.host_key_file")}
	if e.verifyEvery != 0 && e.verifyEvery < time.Minute {
		c.Problem("evidence.verify_every", "is %v, want at least 1m, or 0 for never", e.verifyEvery)
	}
	if e.serve && !e.enabled {
		c.Problem("evidence.serve", "would not be used: evidence.enabled is false")
	}
	if e.trustFile != "" {
		if _, err := evidencereport.ReadTrust(e.trustFile); err != nil {
			c.Problem("evidence.trust_file", "%w", err)
		}
	}
	for _, text := range c.List("evidence.witnesses") {
		url, key, _ := strings.Cut(text, " ")
		e.witnesses = append(e.witnesses, translog.Witness{URL: url, Key: strings.TrimSpace(key)})
	}
	switch err := (translog.Config{Dir: e.dir(c.String("local.dir")), Witnesses: e.witnesses}).Validate(); {
	case !e.enabled:
	case e.log == "" && c.String("local.dir") == "":
		c.Problem("evidence.log", "is not set, and there is no local.dir for a default; set it, or evidence.enabled to false")
	case err != nil:
		c.Problem("evidence.witnesses", "%v; want the URL and the verifier key of each, with a space between", err)
	}
	return e
}
