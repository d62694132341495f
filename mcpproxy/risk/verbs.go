package risk

import (
	"strings"
	"sync"

	"auditproxy/internal/wordlist"
)

// A verb is what a word of a tool's name or description says that the tool does.
type verb struct {
	category  Category // 0 for a word that is no known verb
	ambiguous bool     // also a noun or an adjective: it counts only where a verb is expected
}

// verbOf returns the verb that a word in lower case is in its base form.
func verbOf(word string) verb {
	if n := verbTable().List(word); n > 0 {
		return verbs[n-1].verb
	}
	return verb{}
}

// verbTable is made for the first tool.
var verbTable = sync.OnceValue(func() *wordlist.Table {
	lists := make([]string, len(verbs))
	for i := range verbs {
		lists[i] = verbs[i].words
	}
	return wordlist.New(lists...)
})

// verbs are the words of each kind of verb.
var verbs = [...]struct {
	verb  verb
	words string
}{
	{verb{Read, false}, "get list read show describe find search fetch retrieve lookup look inspect introspect browse view display peek " +
		"check enumerate locate identify discover detect diagnose analyze analyse compare explain examine validate " +
		"verify calculate compute estimate predict measure count recommend suggest subscribe listen wait poll observe " +
		"grep glob ls cat tail stat whoami ping echo obtain return access summarize summarise translate transcribe " +
		"classify decompile disassemble decode parse extract scan lint crawl scrape render capture paginate traverse " +
		"learn recall resolve outline investigate visualize visualise"},
	{verb{Read, true}, "query preview monitor watch research screenshot snapshot help print trace review answer filter sort match has " +
		"is exists report profile audit aggregate"},
	{verb{Write, false}, "create add update edit write insert append prepend modify rename save upload download import assign unassign " +
		"reassign attach detach enable disable configure register unregister unarchive restore undelete undo redo " +
		"recover revert merge checkout unstage rebase unlock reject reopen unpublish unshare invite unfollow unlink " +
		"unmute unsubscribe unpin unstar adopt allocate acquire provision migrate mkdir chmod chown grant " +
		"unblock dismiss replace upsert remember generate initialize initialise init mutate mutation manage toggle " +
		"pause suspend duplicate rotate reorder resize adjust recreate populate annotate compose transform convert " +
		"apply define establish initiate fix autofix acknowledge associate disassociate activate deactivate alter amend " +
		"increment decrement rewrite overwrite persist enqueue ingest reindex vacuum extend renew escalate transition " +
		"upgrade downgrade disconnect split swap untag unset confirm shuffle join untrash accept refactor ungroup " +
		"finalize finalise ignore contribute refresh snooze hide"},
	{verb{Write, true}, "set put change move copy clone store patch mark tag label star pin archive commit push pull switch stage stash " +
		"lock approve close comment reply post publish share follow leave link mute schedule select layout focus zoom " +
		"enter exit signal release draft reserve book sync fork bump touch kick ban block complete cancel reset load " +
		"stop halt abort request open log note document index cache format sign mount unmount alias vote rate track " +
		"backup export record design isolate trash expire rollback revise order delay transfer place issue expand " +
		"shrink make"},
	{verb{Execute, false}, "execute exec evaluate eval invoke send resend dispatch launch relaunch restart reload respawn spawn rerun " +
		"navigate goto submit broadcast delegate inject deploy redeploy install reinstall perform automate interact " +
		"curl wget sudo compile paste simulate emulate hover tap swipe resume operate forward instruct debug"},
	{verb{Execute, true}, "run call trigger start build rebuild test click type press fill pipe prompt script shell bash zsh sh " +
		"powershell pwsh cmd terminal console command python ssh repl cron drag scroll retry replay scale rollout " +
		"control process connect chat dial email message notify ask fire drive code stream visit"},
	{verb{Destructive, false}, "delete del remove rm rmdir destroy truncate purge wipe erase prune kill pkill killall terminate uninstall " +
		"shutdown poweroff reboot teardown nuke shred obliterate discard expunge decommission deprovision evict " +
		"undeploy revoke dropdb mkfs eradicate reimage shut tear destructive irreversible"},
	{verb{Destructive, true}, "drop clear clean cleanup flush empty drain zap scrub"},
	{verb{Financial, false}, "pay purchase buy sell withdraw donate remit repay disburse reimburse invest"},
	{verb{Financial, true}, "refund payout charge trade deposit tip bid stake bill invoice lend borrow"},
}

// nounOf returns the category of a noun that ends the name of a tool without a
// verb, as in git_log, or that is for a verb in a description, as in "deletion".
func nounOf(word string) Category {
	switch word {
	case "log", "logs", "status", "stats", "statistics", "info", "information", "diff", "details", "history", "metadata",
		"tree", "version", "health", "summary", "schema":
		return Read
	case "creation", "modification", "management", "insertion":
		return Write
	case "execution", "invocation", "deployment", "evaluation", "installation":
		return Execute
	case "deletion", "removal", "termination", "destruction", "erasure", "purging", "shutdown", "revocation":
		return Destructive
	}
	return 0
}

// isThing reports whether a word is rather a noun than a verb in front of a
// verb: issue_read, code_search.
func isThing(word string) bool {
	switch word {
	case "code", "console", "terminal", "command", "email", "message", "prompt", "script", "shell", "chat", "stream", "cron", "process",
		"issue", "comment", "label", "tag", "note", "record", "document", "order", "book", "index", "link", "log", "draft", "post",
		"star", "stage", "patch", "release", "request", "alias", "cache", "backup", "track", "layout", "charge", "invoice", "bill",
		"refund", "payout", "deposit", "trade", "tip", "build", "report", "profile", "trace", "review":
		return true
	}
	return false
}

// isMoney reports whether a noun is what a financial tool handles. The word
// subscription alone is not: most are about messages.
func isMoney(word string) bool {
	switch word {
	case "payment", "payments", "paymentintent", "refund", "refunds", "charge", "charges", "payout", "payouts",
		"invoice", "invoices", "money", "fund", "funds", "cash", "crypto", "bitcoin", "btc", "eth", "usdc", "donation",
		"purchase", "dispute", "debit", "payroll", "loan", "bill", "bills":
		return true
	}
	return false
}

// aboutMoney reports whether a noun behind one of isMoney makes it something
// that is only about money: a reminder of an invoice.
func aboutMoney(word string) bool {
	switch word {
	case "code", "reminder", "report", "template", "note", "comment", "tag", "label", "preview", "pdf", "details",
		"status", "history", "webhook", "notification", "settings", "summary", "statistics", "ratio", "reason":
		return true
	}
	return false
}

// withObject returns the category of a verb that depends on its object: the
// words that follow it, up to a preposition.
func withObject(word string, c Category, objects []token) Category {
	has := func(words ...string) bool {
		for _, o := range objects {
			for _, w := range words {
				if o.word == w {
					return true
				}
			}
		}
		return false
	}
	switch word {
	case "reset":
		if has("branch", "parent", "migrations", "database", "db", "data", "factory", "history", "hard", "project",
			"cluster", "instance", "repository", "repo", "workspace", "all", "everything", "device", "server",
			"account", "graph", "index", "collection", "table", "memory", "state", "environment") {
			return Destructive
		}
	case "stop", "halt", "abort":
		if has("instance", "instances", "container", "containers", "server", "service", "process", "vm", "machine",
			"cluster", "database", "node", "pod", "job", "droplet", "dyno", "application", "app") {
			return Execute
		}
	case "revert":
		if has("branch", "parent") {
			return Destructive
		}
	case "perform":
		if has("search", "searches", "lookup", "analysis", "scan", "check", "checks", "count", "counts", "aggregation", "aggregations",
			"audit", "inspection", "comparison", "research") {
			return Read
		}
	case "query":
		if has("database", "db", "sql", "postgres", "postgresql", "mysql", "sqlite", "d1") {
			return Execute
		}
	case "apply":
		if has("tf", "migration", "migrations", "terraform", "plan", "manifest", "manifests", "infrastructure", "stack", "sql") {
			return Execute
		}
	case "resolve":
		if has("issue", "thread", "conversation", "comment", "incident", "alert", "ticket", "conflict", "conflicts",
			"discussion", "case", "bug") {
			return Write
		}
	case "open":
		switch {
		case has("node", "nodes"):
			return Read
		case has("app", "application", "url", "program", "terminal"):
			return Execute
		}
	case "make", "request":
		if has("request", "requests", "call", "calls", "api", "http") {
			return Execute
		}
	case "book":
		if has("flight", "hotel", "ticket", "tickets", "trip", "car") {
			return Financial
		}
	case "checkout":
		if has("cart", "basket", "order") {
			return Financial
		}
	case "unlink":
		if has("file", "path") {
			return Destructive
		}
	case "format":
		if has("disk", "drive", "partition", "volume", "device") {
			return Destructive
		}
	case "push":
		if has("force") {
			return Destructive
		}
	case "cancel":
		if has("subscription", "membership", "booking", "reservation") &&
			!has("notification", "topic", "event", "webhook", "email", "newsletter", "push", "feed", "channel") {
			return Financial
		}
	case "place", "execute", "submit", "issue":
		if has("order", "trade", "swap", "bid", "bet", "card") {
			return Financial
		}
	case "transfer", "swap", "send":
		if has("token", "tokens", "asset", "assets", "shares", "coins", "sol", "balance") {
			return Financial
		}
	case "close":
		switch {
		case has("account"):
			return Destructive
		case has("position", "positions"):
			return Financial
		}
	case "capture":
		if has("authorization", "payment", "charge", "order") {
			return Financial
		}
	}
	if c.rank() >= Write && c.rank() < Destructive {
		for i, o := range objects {
			if isMoney(o.word) && (i+1 == len(objects) || !aboutMoney(objects[len(objects)-1].word)) {
				return Financial
			}
		}
	}
	return c
}

// A form is an inflection of a verb.
type form uint8

const (
	base   form = iota
	third       // deletes
	gerund      // deleting
)

// inflected returns the verb of a word in any of its forms. Participles such as
// "deleted" are none: they describe an object.
func inflected(word string) (v verb, root string, f form) {
	if v = verbOf(word); v.category != 0 {
		return v, word, base
	}
	try := func(root string, as form) bool {
		if c := verbOf(root); c.category != 0 {
			v, word, f = c, root, as
			return true
		}
		return false
	}
	switch n := len(word); {
	case n > 3 && word[n-1] == 's' && word[n-2] != 's':
		if try(word[:n-1], third) || word[n-2] == 'e' && try(word[:n-2], third) {
			return v, word, f
		}
		if strings.HasSuffix(word, "ies") && try(word[:n-3]+"y", third) {
			return v, word, f
		}
		if strings.HasSuffix(word, "sses") && try(word[:n-2], third) {
			return v, word, f
		}
	case n > 5 && strings.HasSuffix(word, "ing"):
		root := word[:n-3]
		if try(root, gerund) || try(root+"e", gerund) {
			return v, word, f
		}
		if m := len(root); root[m-1] == root[m-2] && try(root[:m-1], gerund) {
			return v, word, f
		}
	}
	return verb{}, "", base
}

// hidden returns the verb that a long word starts or ends with, as in
// deleteuser, if it is one that must not be overlooked.
func hidden(word string) Category {
	for _, v := range [...]string{"delete", "remove", "destroy", "purge", "erase", "truncate", "terminate", "uninstall", "killall"} {
		if rest, ok := strings.CutPrefix(word, v); ok && len(rest) > 2 {
			return Destructive
		}
		if rest, ok := strings.CutSuffix(word, v); ok && len(rest) > 2 {
			return Destructive
		}
	}
	for _, v := range [...]string{"execute", "invoke"} {
		if rest, ok := strings.CutPrefix(word, v); ok && len(rest) > 2 {
			return Execute
		}
	}
	return 0
}
