package code

import (
	"path"
	"strings"

	"auditproxy/internal/lazyregexp"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

var (
	// calls whose arguments are a file and a mode, in Perl a handle, a mode and a file
	opensFile = pattern{lazyregexp.New(`\bf?open(?:Sync)?\s*[( ]\s*|\bFile\.new\s*[( ]\s*`), 3}
	// calls whose first argument is a file that they write
	writesFile = pattern{lazyregexp.New(`(?i)\b(?:(?:write|append|output)(?:Text)?File(?:Sync)?|createWriteStream|file_put_contents|(?:File|IO)\.(?:bin)?write|Bun\.write|(?:Write|Append)All(?:Text|Bytes|Lines))\s*[( ]\s*`), 3}
	// methods of a file that write it, or open it with a mode
	writesItself = pattern{lazyregexp.New(`[\])\w]\.(?:write_text|write_bytes)\s*\(|\)\.open\s*\(\s*(?:mode\s*=\s*)?["'][wax]`), 2}
	// calls whose second argument is a file that they write
	copiesFile = pattern{lazyregexp.New(`\b(?:shutil\.(?:copy2?|copyfile|move)|os\.(?:rename|replace|symlink|link)|(?:copyFile|symlink|rename|link)(?:Sync)?|FileUtils\.(?:cp|mv|copy|move|ln_sf?|install)|File\.(?:rename|symlink|link))\s*[( ]\s*`), 3}
	// calls that read a file
	readsContent = pattern{lazyregexp.New(`(?i)\b(?:(?:read(?:Text)?File|createReadStream)(?:Sync)?|file_get_contents|(?:File|IO)\.(?:read(?:lines)?|binread|foreach)|Bun\.file|ReadAll(?:Text|Bytes|Lines)|readfile)\s*[( ]\s*`), 3}
	// methods of a file that read it
	readsItself = pattern{lazyregexp.New(`[\])\w]\.(?:read_text|read_bytes)\s*\(`), 2}

	openMode = lazyregexp.New(`^(?:mode\s*=\s*|:mode\s*=>\s*)?["']([rwaxbtcs+]{1,4})(?::[^"']*)?["']$`)
)

// maxCalls is how many calls of one kind are looked at.
const maxCalls = 512

// files judges the files that code names in calls which write or read one: where a
// program starts from, a device, or a secret.
func files(src *source) {
	for _, call := range calls(src, opensFile) {
		args := arguments(src, call[1])
		if len(args) == 0 {
			continue
		}
		file, writes := args[0], false
		for i, arg := range args[1:] {
			if mode := openMode.FindStringSubmatch(arg); mode != nil {
				writes = writes || strings.ContainsAny(mode[1], "waxc+")
			} else if lits := stringLiterals(arg); i == 0 && len(lits) == 1 && strings.HasPrefix(strings.TrimLeft(lits[0], "+"), ">") { // Perl
				writes, file = true, "'"+strings.TrimLeft(lits[0], "+> ")+"'"
				if file == "''" && len(args) > 2 {
					file = args[2]
				}
			}
		}
		if writes {
			writesTo(src, call[0], file)
		} else {
			readsFrom(src, call[0], args...)
		}
	}
	for _, call := range calls(src, writesFile) {
		if args := arguments(src, call[1]); len(args) > 0 {
			writesTo(src, call[0], args[0])
		}
	}
	for _, call := range calls(src, writesItself) {
		writesTo(src, call[0], receiver(src, call[0]+1))
	}
	for _, call := range calls(src, copiesFile) {
		if args := arguments(src, call[1]); len(args) > 1 {
			readsFrom(src, call[0], args[0])
			writesTo(src, call[0], args[1])
		}
	}
	for _, call := range calls(src, readsContent) {
		if args := arguments(src, call[1]); len(args) > 0 {
			readsFrom(src, call[0], args[0])
		}
	}
	for _, call := range calls(src, readsItself) {
		readsFrom(src, call[0], receiver(src, call[0]+1))
	}
}

// calls returns where code has the calls. More than anybody writes make it Opaque, so that
// none hides behind others.
func calls(src *source, p pattern) [][]int {
	found := src.find(p, maxCalls)
	if len(found) == maxCalls {
		src.s.Add(detector.Opaque)
	}
	return found
}

func writesTo(src *source, at int, file string) {
	for _, name := range fileNames(src, at, file) {
		src.s.WriteTo(shell.Field{Text: name})
	}
}

func readsFrom(src *source, at int, exprs ...string) {
	for _, expr := range exprs {
		for _, name := range fileNames(src, at, expr) {
			if place.IsCredential(name) {
				src.s.Add(detector.CredentialRead)
			}
		}
	}
}

// fileNames returns what the expression of a file could name: its literals, and all of
// them as the parts of one path. Those of a variable are what was last assigned to it
// before the call.
func fileNames(src *source, at int, expr string) []string {
	lits := stringLiterals(expr)
	if len(lits) == 0 {
		name := strings.Trim(expr, "$@ \t()")
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || r != '.' && !isNameByte(byte(r)) }) {
			return nil
		}
		lits = stringLiterals(assignedTo(src, at, name))
	}
	if len(lits) > 1 {
		lits = append(lits, path.Join(lits...))
	}
	return lits
}

// assignedTo returns the rest of the line that last assigned to a variable before a place.
func assignedTo(src *source, at int, name string) string {
	for before := src.text[:at]; src.s.Spend(len(before) / searches); {
		i := strings.LastIndex(before, name)
		if i < 0 {
			break
		}
		after := strings.TrimLeft(src.text[i+len(name):at], " \t")
		if before = before[:i]; (i == 0 || !isNameByte(src.text[i-1])) && strings.HasPrefix(after, "=") && !strings.HasPrefix(after, "==") {
			line, _, _ := strings.Cut(after[:min(len(after), maxArgs)], "\n")
			return line
		}
	}
	return ""
}

// receiver returns the expression in front of a method's dot, as far as its line has it.
func receiver(src *source, dot int) string {
	from := strings.LastIndexAny(src.text[max(0, dot-maxArgs):dot], "\n;") + 1
	expr := src.text[max(0, dot-maxArgs):dot][from:]
	if i := strings.LastIndexByte(expr, ' '); i >= 0 && !strings.ContainsAny(expr, `"'`) {
		expr = expr[i+1:]
	}
	return expr
}
