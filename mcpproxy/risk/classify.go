package risk

// ofName returns the category of a tool's name, 0 if it has no verb. readOnly
// means that the description says what is run only reads.
//
// Each verb counts, at any position, and the highest decides. A word that is
// also a noun counts only if no verb precedes it, or if a conjunction does:
// get_commit reads, git_commit and find_and_replace write.
func ofName(list []token, readOnly bool) (c Category) {
	readOnly = readOnly || onlyReads(list)
	seen := false // a verb
	for i := 0; i < len(list); i++ {
		w := list[i].word
		if i+1 < len(list) && w != "" && isCompound(w, list[i+1].word) {
			i++
			continue
		}
		v := verbOf(w)
		if i == 0 && v.category == 0 {
			var f form
			if v, _, f = inflected(w); f != third || v.ambiguous {
				v = verb{}
			} else {
				_, w, _ = inflected(w)
			}
		}
		if v.category == 0 {
			c = higher(c, hidden(w))
			continue
		}
		if v.ambiguous {
			joined := i > 0 && isConjunction(list[i-1].word)
			if seen && !joined || i > 0 && isQualifier(list[i-1].word) || w == "drop" && joined && i > 1 && list[i-2].word == "drag" {
				continue
			}
			if n := nounOf(w); n != 0 && i > 0 && i == len(list)-1 && !seen {
				c = higher(c, n)
				continue
			}
		}
		objects := list[i+1:]
		if i == len(list)-1 {
			objects = list[:i] // kv_namespace_delete
		}
		seen = true
		c = higher(c, effect(w, v.category, objects, readOnly))
	}
	if c == 0 && len(list) > 1 {
		c = nounOf(list[len(list)-1].word)
	}
	return c
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
		return a == "command" || a == "terminal" || a == "console" || a == "shell"
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

// ofDescription returns the category of the first sentence of a description, 0
// if it has no verb.
//
// A word counts as a verb at the start, and behind a conjunction or a mark
// between clauses, in the form of the first one: "Get the user, archive or
// delete it" deletes, "Get the archive, commits and tags" reads. If the start
// has no verb, each unambiguous one counts: "A tool that deletes users".
func ofDescription(list []token, readOnly bool) (c Category) {
	i := skipLead(list)
	lead, found := base, false
	afterVerb := true // the word before was a verb, or nothing
	for n := i; n < len(list); n++ {
		t := list[n]
		if n+1 < len(list) && isCompound(t.word, list[n+1].word) {
			n++
			afterVerb = false
			continue
		}
		// A place where a clause can start: "and", "or then", ", permanently".
		open := n == i || t.before == ',' || t.before == '/' || t.before == ':'
		wasVerb := afterVerb
		for k := n - 1; k >= i && !open; k-- {
			if isConjunction(list[k].word) {
				open = true
			} else if !isAdverb(list[k].word) {
				break
			}
		}
		if isConjunction(t.word) || isAdverb(t.word) && verbOf(t.word).category == 0 {
			continue
		}
		afterVerb = false
		v, root, f := inflected(t.word)
		if v.category == 0 {
			if n == i && hidden(t.word) != 0 {
				c, found = higher(c, hidden(t.word)), true
			}
			continue
		}
		article := n+1 < len(list) && list[n+1].before == 0 && isArticle(list[n+1].word)
		switch {
		case negated(list[:n]):
			continue
		case n == i:
			// "Query results": a noun, unless nothing else can be the verb.
			lead, found = f, true
		case t.before == '-' && !open:
			continue
		case open && f == lead && (!v.ambiguous || wasVerb || article) && !(root == "drop" && list[n-1].word == "and" && n > 1 && list[n-2].word == "drag"):
		case open && f == base && !v.ambiguous && found:
		case f == gerund && n > 0 && isCause(list[n-1].word) && (!v.ambiguous || article) && v.category.rank() >= Execute:
		case t.exact == "DESTRUCTIVE" || t.exact == "IRREVERSIBLE" || t.word == "irreversible" || t.word == "irreversibly":
		default:
			continue
		}
		afterVerb = true
		end := n + 1
		for end < len(list) && list[end].before == 0 && !isConjunction(list[end].word) {
			end++
		}
		c = higher(c, effect(root, v.category, list[n+1:end], readOnly))
	}
	if found {
		return c
	}
	for n, t := range list {
		v, root, f := inflected(t.word)
		if v.category == 0 {
			if n := nounOf(t.word); n >= Write {
				c = higher(c, n)
			}
			continue
		}
		if negated(list[:n]) || t.before == '-' {
			continue
		}
		clause := n > 0 && (f == gerund && (list[n-1].word == "for" || isCause(list[n-1].word)) ||
			f == third && (list[n-1].word == "that" || list[n-1].word == "which" || list[n-1].word == "it") ||
			f == base && (list[n-1].word == "to" || list[n-1].word == "can" || list[n-1].word == "will" || list[n-1].word == "may"))
		if clause || !v.ambiguous && v.category.rank() >= Write {
			c = higher(c, effect(root, v.category, list[n+1:], readOnly))
		}
	}
	return c
}

// isCause reports whether a gerund behind the word is something the tool does.
func isCause(word string) bool {
	switch word {
	case "by", "of", "via", "after", "through", "and", "or":
		return true
	}
	return false
}

// negated reports whether the words before a verb deny it.
func negated(before []token) bool {
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
