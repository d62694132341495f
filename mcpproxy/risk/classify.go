package risk

// A meaning is what a name or a sentence says.
type meaning struct {
	category Category // 0 for nothing
	weak     bool     // only by a word that is rather a noun
}

func (m *meaning) add(c Category, weak bool) {
	if c.rank() > m.category.rank() {
		m.category, m.weak = c, weak
	} else if c.rank() == m.category.rank() {
		m.weak = m.weak && weak
	}
}

// ofName returns what a tool's name says. readOnly means that the description
// says that what is run only reads.
//
// Each verb counts, at any position, and the highest decides. A word that is
// also a noun counts only if no verb precedes it, or if a conjunction does:
// get_commit reads, git_commit and find_and_replace write.
func ofName(list []token, readOnly bool) (m meaning) {
	readOnly = readOnly || onlyReads(list)
	seen, acts := false, false // a verb, one that is not both a noun and only reads
	for i := 0; i < len(list); i++ {
		w, last := list[i].word, i == len(list)-1
		if !last && isCompound(w, list[i+1].word) {
			i++
			continue
		}
		v := verbOf(w)
		if i == 0 && v.category == 0 { // deletes_user
			if asThird, root, f := inflected(w); f == third && !asThird.ambiguous {
				v, w = asThird, root
			}
		}
		if v.category == 0 {
			m.add(hidden(w), false)
			continue
		}
		weak := false
		if v.ambiguous {
			joined := i > 0 && isConjunction(list[i-1].word)
			switch {
			case seen && !joined && (acts || !last), i > 0 && isQualifier(list[i-1].word), isDragAndDrop(list, i):
				continue
			case isThing(w) && i == len(list)-2 && isPlainVerb(list[i+1].word):
				continue
			case last && i > 0 && nounOf(w) != 0:
				m.add(nounOf(w), false)
				continue
			}
			weak = (last || isThing(w) || w == "open") && !joined && v.category == Write
		} else if i > 0 && isQualifier(list[i-1].word) && w == "destructive" {
			continue
		}
		objects := list[i+1:]
		if last {
			objects = list[:i] // kv_namespace_delete
		}
		seen, acts = true, acts || !v.ambiguous || v.category > Read
		m.add(effect(w, v.category, objects, readOnly), weak)
	}
	if m.category == 0 && len(list) > 0 {
		m.add(nounOf(list[len(list)-1].word), false)
	}
	return m
}

func isPlainVerb(word string) bool {
	v := verbOf(word)
	return v.category != 0 && !v.ambiguous
}

func isDragAndDrop(list []token, i int) bool {
	return i > 0 && list[i].word == "drop" && (list[i-1].word == "drag" || i > 1 && list[i-1].word == "and" && list[i-2].word == "drag")
}

// effect returns the category of the verb w, which has the category c.
func effect(w string, c Category, objects []token, readOnly bool) Category {
	if readOnly && softened(w) {
		return Read
	}
	for i, o := range objects {
		if i > 8 || i > 0 && isPreposition(o.word) && w != "reset" { // of a branch, to its parent
			objects = objects[:i]
			break
		}
	}
	return withObject(w, c, objects)
}

// softened reports whether a verb only reads if its object does.
func softened(w string) bool {
	switch w {
	case "run", "execute", "query", "call", "perform", "exec":
		return true
	}
	return false
}

// isCompound reports whether two words are one noun.
func isCompound(a, b string) bool {
	switch b {
	case "request", "requests":
		return a == "pull" || a == "merge" || a == "feature" || a == "network" || a == "change"
	case "notification", "notifications":
		return a == "push"
	case "code", "codes":
		return a == "qr" || a == "zip" || a == "error" || a == "source"
	case "account", "accounts":
		return a == "email" || a == "store"
	case "system", "systems":
		return a == "file" || a == "design"
	case "run", "runs":
		return a == "workflow" || a == "test" || a == "pipeline"
	case "log", "logs":
		return a == "build" || a == "console" || a == "commit" || a == "test" || a == "deploy"
	case "message", "messages":
		return a == "console" || a == "commit" || a == "chat"
	case "history":
		return a == "command" || a == "shell" || a == "chat" || a == "message" || a == "call"
	case "output":
		return a == "command" || a == "terminal" || a == "console" || a == "shell" || a == "bash"
	}
	return false
}

// onlyReads reports whether the words say that what is run only reads: a
// read-only query, a SELECT statement, the readonly tools.
func onlyReads(list []token) bool {
	for i := 0; i < len(list); i++ {
		from := i + 1
		switch w := list[i].word; {
		case w == "readonly":
		case w == "read" && from < len(list) && (list[from].word == "only" || list[from].word == "mode"):
			from++
			if list[from-1].word == "mode" {
				return i == 0 || list[i-1].word == "in"
			}
		case list[i].exact == "SELECT":
		case (w == "read" || w == "inspect") && from < len(list) && list[from].word == "tools":
		default:
			continue
		}
		if i > 0 && (isQualifier(list[i-1].word) || list[i-1].word == "or" || list[i-1].word == "and") {
			continue
		}
		for n, o := range list[from:] {
			if n > 3 || o.before == ',' || o.before == ':' || isConjunction(o.word) {
				break
			}
			switch o.word {
			case "query", "queries", "sql", "statement", "statements", "cypher", "transaction", "transactions", "graphql",
				"operation", "operations", "tools", "request", "requests", "promql", "access", "batch":
				return true
			}
		}
	}
	return false
}

// ofDescription returns what the first sentence of a description says.
//
// A word counts as a verb at the start, and behind a conjunction or a mark
// between clauses, in the form of the first one: "Get the user, archive or
// delete it" deletes, "Get the archive, commits and tags" reads. If the start
// has no verb, each unambiguous one counts: "A tool that deletes users".
func ofDescription(list []token, readOnly bool) (m meaning) {
	start := skipLead(list)
	lead, found := base, false
	afterVerb := true // the word before was a verb, or nothing
	for n := start; n < len(list); n++ {
		t := list[n]
		if n+1 < len(list) && isCompound(t.word, list[n+1].word) {
			n++
			afterVerb = false
			continue
		}
		v, root, f := inflected(t.word)
		if v.category == 0 && (isConjunction(t.word) || isAdverb(t.word)) {
			continue
		}
		wasVerb := afterVerb
		if afterVerb = false; v.category == 0 {
			if c := hidden(t.word); n == start && c != 0 {
				m.add(c, false)
				found = true
			}
			continue
		}
		article := n+1 < len(list) && list[n+1].before == 0 && isArticle(list[n+1].word)
		open := opensClause(list, start, n)
		weak := false
		switch {
		case isNegated(list[:n]), isDragAndDrop(list, n):
			continue
		case n == start:
			lead, found = f, true
			weak = v.ambiguous && !article && v.category == Write
		case t.before == '-' && !open:
			continue
		case open && f == lead && (!v.ambiguous || wasVerb || article):
		case open && f == base && !v.ambiguous && found:
		case f == gerund && isCause(list[n-1].word) && (!v.ambiguous || article) && v.category.rank() >= Execute:
		case t.exact == "DESTRUCTIVE" || t.exact == "IRREVERSIBLE" || t.word == "irreversible" || t.word == "irreversibly":
		default:
			continue
		}
		afterVerb = true
		m.add(effectIn(list, n, root, v.category, readOnly), weak)
	}
	if !found && m.category == 0 {
		return ofPhrase(list, readOnly)
	}
	return m
}

// opensClause reports whether a clause can start at list[n]: "and", "or then",
// ", permanently".
func opensClause(list []token, start, n int) bool {
	for k := n; k > start; k-- {
		if b := list[k].before; b == ',' || b == '/' || b == ':' || isConjunction(list[k-1].word) {
			return true
		}
		if !isAdverb(list[k-1].word) {
			return false
		}
	}
	return true
}

// effectIn is effect for the verb root at list[n].
func effectIn(list []token, n int, root string, c Category, readOnly bool) Category {
	end := n + 1
	for end < len(list) && list[end].before == 0 && !isConjunction(list[end].word) {
		end++
	}
	if root == "query" {
		return Read // a database by many names; what runs SQL says so
	}
	return effect(root, c, list[n+1:end], readOnly)
}

// ofPhrase is ofDescription for a sentence that does not start with a verb.
func ofPhrase(list []token, readOnly bool) (m meaning) {
	for n, t := range list {
		v, root, f := inflected(t.word)
		if v.category == 0 {
			if c := nounOf(t.word); c >= Write && (n == len(list)-1 || list[n+1].before != 0 || isPreposition(list[n+1].word)) && !isNegated(list[:n]) {
				m.add(c, false)
			}
			continue
		}
		if n == 0 || isNegated(list[:n]) || t.before == '-' {
			continue
		}
		clause := false
		switch before := list[n-1].word; before {
		case "for", "by", "of", "via":
			clause = f == gerund
		case "that", "which", "it":
			clause = f == third
		case "to", "can", "will", "may":
			clause = f == base
		}
		if clause || !v.ambiguous && v.category.rank() >= Write {
			m.add(effectIn(list, n, root, v.category, readOnly), false)
		}
	}
	return m
}

// isCause reports whether a gerund behind the word is something the tool does.
func isCause(word string) bool {
	switch word {
	case "by", "of", "via", "after", "through", "and", "or":
		return true
	}
	return false
}

// isNegated reports whether the words before a verb deny it.
func isNegated(before []token) bool {
	for n := len(before) - 1; n >= 0 && n >= len(before)-2; n-- {
		switch before[n].word {
		case "not", "never", "without", "cannot", "don't", "doesn't", "won't", "can't", "non", "no":
			return true
		}
	}
	return false
}

// skipLead returns where the first clause starts, behind phrases such as "This
// tool can be used to" and "Permanently".
func skipLead(list []token) int {
	i := 0
	for i < len(list) {
		switch w := list[i].word; w {
		case "this", "tool", "tools", "a", "an", "the", "function", "utility", "helper", "api", "endpoint", "method",
			"operation", "action", "mcp", "used", "use", "can", "be", "is", "lets", "helps", "ability", "capability",
			"agent", "agents", "you", "user", "users", "it", "to", "for", "that", "which", "will", "may", "simply", "please",
			"deprecated", "experimental", "beta", "allows", "provides", "ai", "llms", "us", "them", "clients":
			i++
		case "allow", "enable", "enables", "help", "let":
			if i+2 < len(list) && (list[i+1].word == "to" || list[i+2].word == "to" || list[i+1].word == "you" || w == "let" || w == "help") {
				i++
				continue
			}
			return i
		default:
			if isAdverb(w) && verbOf(w).category == 0 {
				i++
				continue
			}
			// "Slack: send a message"
			if i+1 < len(list) && list[i+1].before == ':' && verbOf(w).category == 0 && i < 4 {
				i++
				continue
			}
			return i
		}
	}
	return 0
}

// higher returns the higher category, a if they rank the same.
func higher(a, b Category) Category {
	if b.rank() > a.rank() {
		return b
	}
	return a
}
