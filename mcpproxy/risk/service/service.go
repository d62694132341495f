package service

import (
	"slices"
	"strings"

	"auditproxy/internal/wordlist"
)

// An Access is what the name of a tool says that it does.
type Access uint8

const (
	Other   Access = iota // it deletes, or its name says nothing
	Reads                 //
	Changes               // it writes, or runs something
)

// A Tool is what a tool is by the words of its name, beyond its category.
type Tool struct {
	Program  string // that it runs: its arguments are words of the command, as in git_push
	Database bool   // it is named for a database: its queries and statements are SQL
	Queries  bool   // it is named for queries: they may be SQL
	Graph    bool   // they are Cypher
	Relays   bool   // it calls the tool that its arguments name, as call_tool
	Code     string // how a shell would run the code that it gets, "" for none
	Speaks   bool   // its name says the language of that: no shell runs it

	grants   bool // it gives a person, a key or a program access to a repository or an organization
	forwards bool // it makes mail go elsewhere
	shares   bool // it changes who can see something
	moves    bool // it moves a branch
	protects bool // it changes what protects a branch
	scales   bool // it says how many instances run
	mongo    bool // its arguments are commands of MongoDB
	page     bool // it runs code in a page of a browser
	rules    bool // it makes rules for mail
	many     bool // it changes or deletes all that match
	drops    bool // it drops a table, a database or an index
	requests bool // it sends the request that its arguments describe
	cloud    bool // it calls the operation of a cloud that its arguments name
	grantees bool // it changes who has rights to something
	secrets  bool // it reads a secret
	objects  bool // it reads an object of a cluster, of a kind that its arguments name
	network  bool // it changes from where a network can be reached
	weakens  bool // it turns off what protects an account or records what happens

	operation string // of a cloud, that it calls
}

// New returns what a tool is whose name has these words.
func New(words []string, access Access) (t Tool) {
	has := func(list string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return wordlist.Has(list, w) })
	}
	t.Program = programOf(words)
	t.Database = has("sql db database pg postgres postgresql mysql mariadb sqlite clickhouse bigquery snowflake duckdb mssql sqlserver redshift cockroach trino")
	t.Queries = has("query queries") && !has("docs documentation library knowledge web search graphql promql logs metrics")
	t.Graph = has("cypher neo4j memgraph falkordb")
	if access == Changes {
		t.Code = interpreterOf(has)
		t.Speaks = t.Code != "" && has(languages+" jupyter notebook blender")
	}
	t.mongo = has("mongo mongodb")
	t.page = has("browser page playwright puppeteer chrome devtools tab") && has("evaluate eval script javascript js code")
	t.requests = has("request http https rest api curl fetch elasticsearch opensearch")
	t.cloud = has("aws boto boto3")
	t.many = has("many") && has("delete remove update replace")
	t.drops = has("drop truncate") && has("collection database table index indexes schema keyspace") ||
		has("delete") && has("index indices database table schema keyspace") && !has("row rows record records column comment page entry")
	t.weakens = access != Reads && weakens(has)
	if access == Reads {
		t.secrets = readsSecret(has)
		t.objects = has("resource resources kubectl kubernetes k8s object objects") && !has("list")
		return t
	}
	t.operation = operationOf(words)
	t.protects = has("protection protections") && has("branch branches tag repository repo deployment environment") || has("ruleset rulesets")
	t.scales = has("scale resize replicas autoscaling scaling")
	if access != Changes {
		return t // to delete or to list them is something else
	}
	repository := has("repo repos repository repositories org organization project actions codespaces dependabot environment team")
	makes := has("create add set update register put insert enable configure grant new")
	t.grants = has("collaborator collaborators") || has("deploy ssh") && has("key keys") ||
		repository && has("secret secrets webhook webhooks hook member members membership memberships transfer") ||
		makes && has("webhook webhooks") || (makes || has("mailbox gmail calendar")) && has("delegate delegates delegation") ||
		has("invite invitation invitations") && (has("external guest outside") || has("shared") && has("conversation conversations channel") ||
			has("user users member members org organization workspace team people") && !has("channel event meeting calendar chat conversation conversations"))
	t.grants = t.grants || makesAccess(has, t.Database || t.mongo || has("atlas"))
	t.network = makes && isNetwork(has)
	t.forwards = makes && has("forwarding autoforward autoforwarding")
	t.rules = has("rule rules filter filters forward forwarding mailbox sieve vacation")
	t.shares = has("update edit modify set change patch") && has("repo repository project bucket dataset database instance gist visibility")
	t.grantees = has("share sharing permission permissions acl acls access iam policy grant") && !has("network approval retention") || t.shares
	t.moves = has("ref reference branch")
	return t
}

// programOf returns the program, and its command, that a tool with a name of these words
// runs, "" for none.
func programOf(words []string) (program string) {
	verb := ""
	for _, w := range words {
		switch w {
		case "git", "kubectl", "helm", "docker", "podman", "terraform", "tofu", "aws", "gcloud", "az", "gh", "glab", "svn", "hg":
			program = w
		case "redis", "valkey":
			program = "redis-cli"
		case "run", "execute", "exec", "call", "invoke", "command", "commands", "cmd", "cli", "generic", "raw", "tool", "mcp":
		case "push", "reset", "clean", "checkout", "branch", "stash", "rebase", "commit", "tag", "switch", "restore", "remote", "reflog", "gc", "worktree", "config":
			verb += " " + w
		default:
			return ""
		}
	}
	if verb != "" && (program != "git" || strings.Count(verb, " ") > 1) {
		return ""
	}
	return program + verb
}
