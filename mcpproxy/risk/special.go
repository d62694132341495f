package risk

import (
	"slices"
	"strings"
)

// A special is what a tool is by the words of its name, beyond its category.
type special struct {
	program  string // that it runs: its arguments are words of the command, as in git_push
	database bool   // its queries and statements are SQL
	grants   bool   // it gives a person, a key or a program access to a repository or an organization
	shares   bool   // it changes who can see something
	moves    bool   // it moves a branch
	protects bool   // it changes what protects a branch
	scales   bool   // it says how many instances run
	mongo    bool   // its arguments are commands of MongoDB
	relays   bool   // it calls the tool that its arguments name, as call_tool
	page     bool   // it runs code in a page of a browser
}

// specialOf returns what a tool is by its name.
func specialOf(list []token, c Category) (s special) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(list, func(t token) bool { return slices.Contains(words, t.word) })
	}
	s.program = programOf(list)
	s.database = has("sql", "db", "database", "pg", "postgres", "postgresql", "mysql", "mariadb", "sqlite", "clickhouse", "bigquery", "snowflake", "duckdb", "mssql", "sqlserver", "redshift", "cockroach", "trino")
	s.mongo = has("mongo", "mongodb")
	s.page = has("browser", "page", "playwright", "puppeteer", "chrome", "devtools", "tab") && has("evaluate", "eval", "script", "javascript", "js", "code")
	if c == Read {
		return s
	}
	s.protects = has("protection", "protections") && has("branch", "branches", "tag", "repository", "repo", "deployment", "environment") || has("ruleset", "rulesets")
	s.scales = has("scale", "resize", "replicas", "autoscaling", "scaling")
	if c != Write && c != Execute {
		return s // to delete or to list them is something else
	}
	repository := has("repo", "repos", "repository", "repositories", "org", "organization", "project", "actions", "codespaces", "dependabot", "environment", "team")
	s.grants = has("collaborator", "collaborators") || has("deploy", "ssh") && has("key", "keys") ||
		repository && has("secret", "secrets", "webhook", "webhooks", "hook", "member", "members", "membership", "memberships", "transfer")
	s.shares = has("update", "edit", "modify", "set", "change", "patch") && has("repo", "repository", "project", "bucket", "dataset", "database", "instance", "gist", "visibility")
	s.moves = has("ref", "reference", "branch")
	return s
}

// programOf returns the program, and its command, that a tool with a name of these words
// runs, "" for none.
func programOf(list []token) (program string) {
	verb := ""
	for _, t := range list {
		switch t.word {
		case "git", "kubectl", "helm", "docker", "podman", "terraform", "tofu", "aws", "gcloud", "az", "gh", "glab", "svn", "hg":
			program = t.word
		case "redis", "valkey":
			program = "redis-cli"
		case "run", "execute", "exec", "call", "invoke", "command", "commands", "cmd", "cli", "generic", "raw", "tool", "mcp":
		case "push", "reset", "clean", "checkout", "branch", "stash", "rebase", "commit", "tag", "switch", "restore", "remote", "reflog", "gc", "worktree", "config":
			verb += " " + t.word
		default:
			return ""
		}
	}
	if verb != "" && (program != "git" || strings.Count(verb, " ") > 1) {
		return ""
	}
	return program + verb
}
