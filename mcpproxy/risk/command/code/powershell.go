package code

import (
	"encoding/base64"
	"strings"
	"unicode/utf16"

	"auditproxy/internal/lazyregexp"
	"auditproxy/mcpproxy/risk/command/place"
	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/detector"
)

// PowerShell judges commands of PowerShell and cmd, whose names ignore case.
func PowerShell(s *shell.Shell, name string, args []shell.Field, in shell.Stream) {
	operands := 0
	recursive := false
	for _, a := range args {
		lower := strings.ToLower(a.Text)
		switch {
		case lower == "-whatif" || lower == "/?":
			return
		case lower == "/s" || strings.HasPrefix(lower, "-rec") || lower == "-r":
			recursive = true
		case !strings.HasPrefix(lower, "-") && !strings.HasPrefix(lower, "/q") && lower != "/f":
			operands++
		}
	}
	piped := in.Kind != shell.None && in.Kind != shell.Empty
	text := strings.ToLower(shell.Join(args))
	switch name {
	case "remove-item", "ri", "del", "erase", "rd", "rmdir", "deltree":
		if (operands > 0 || piped) && (name != "ri" || len(args) > operands || piped) {
			if s.Add(detector.ForcedDelete); recursive {
				s.Add(detector.RecursiveDelete)
			}
		}
	case "clear-content":
		s.Add(detector.EmptyFile)
	case "clear-recyclebin":
		s.Add(detector.ForcedDelete)
	case "format-volume", "clear-disk", "remove-partition", "initialize-disk", "diskpart":
		s.Add(detector.DeviceWrite)
	case "format":
		if len(args) > 0 && len(args[0].Text) == 2 && args[0].Text[1] == ':' {
			s.Add(detector.DeviceWrite)
		}
	case "stop-computer", "restart-computer":
		s.Add(detector.Shutdown)
	case "remove-itemproperty":
		s.Add(detector.ForcedDelete)
	case "stop-process", "spps": // which does not ask the process
		if !strings.Contains(text, "-whatif") {
			s.Add(detector.Kill)
		}
	case "taskkill":
		if strings.Contains(text, "/f") {
			s.Add(detector.Kill)
		}
	case "stop-service":
		s.Add(detector.Teardown)
	case "vssadmin", "wbadmin", "bcdedit":
		if strings.Contains(text, "delete") || strings.Contains(text, "recoveryenabled no") || strings.Contains(text, "ignoreallfailures") ||
			strings.Contains(text, "resize shadowstorage") {
			s.Add(detector.ForcedDelete)
		}
	case "cipher":
		if strings.Contains(text, "/w") {
			s.Add(detector.ForcedDelete)
		}
	case "icacls":
		if (strings.Contains(text, "everyone:") || strings.Contains(text, "*s-1-1-0:")) && strings.Contains(text, "f") {
			s.Add(detector.PermissionsAll)
		}
	case "reg":
		if strings.HasPrefix(text, "delete") {
			s.Add(detector.ForcedDelete)
		} else if strings.HasPrefix(text, "add") && place.IsRunKey(text) {
			s.Add(detector.Persistence)
		}
	case "schtasks":
		if strings.Contains(text, "/create") {
			s.Add(detector.Persistence)
		} else if strings.Contains(text, "/delete") {
			s.Add(detector.Teardown)
		}
	case "iex", "invoke-expression":
		if len(args) == 0 {
			s.Feed(in, "")
			return
		}
		if name == "iex" && len(args[0].Text) > 1 && args[0].Text[0] == '-' && !strings.EqualFold(args[0].Text, "-command") {
			return // Elixir's
		}
		for _, w := range [...]string{"iwr", "irm", "downloadstring", "invoke-webrequest", "invoke-restmethod", "webclient", "curl", "wget"} {
			if strings.Contains(text, w) {
				s.Add(detector.RemoteExec)
			}
		}
		s.Add(detector.Opaque)
	}
}

var powershellDelete = pattern{lazyregexp.New(`(?i)\b(?:remove-item|clear-content|format-volume|clear-disk|stop-computer|restart-computer|\[(?:system\.)?io\.(?:file|directory)\]::delete)\b`), 2}

// powershellSends finds what a cmdlet or a client of .NET sends of a file.
var powershellSends = pattern{lazyregexp.New(`(?i)-body\b[^;|\n]*(?:\(\s*(?:get-content|gc|cat|type)|\breadall(?:text|bytes|lines))\b|\.uploadfile\w*\(|\.upload(?:data|string|values)\w*\([^;\n]*(?:get-content|readall|\bgc\b)`), 4}

// PowerShellLine judges a line that a shell cannot parse.
func PowerShellLine(s *shell.Shell, line string) {
	lower := lowerASCII(line)
	for _, need := range powershellSends.Needs() {
		if strings.Contains(lower, need) {
			if s.Spend(powershellSends.cost*len(line)) && powershellSends.MatchString(line) {
				s.Add(detector.Exfiltration)
			}
			return
		}
	}
}

// PowerShellArgs judges the arguments of powershell and cmd.
func PowerShellArgs(s *shell.Shell, args []shell.Field, in shell.Stream) {
	for i, a := range args {
		lower := strings.ToLower(a.Text)
		switch {
		case strings.HasPrefix(lower, "-e") && strings.HasPrefix("-encodedcommand", lower) || lower == "-ec":
			s.Add(detector.DecodedExec)
			if i+1 < len(args) {
				if raw, err := base64.StdEncoding.DecodeString(args[i+1].Text); err == nil {
					runPowerShell(s, utf16LE(raw), in)
				}
			}
			return
		case lower == "/c", lower == "/k":
			text := strings.ReplaceAll(shell.Join(args[i+1:]), "^", "") // quotes a character
			runPowerShell(s, batch(s, text), in)
			return
		case strings.HasPrefix(lower, "-c") && strings.HasPrefix("-command", lower):
			runPowerShell(s, shell.Join(args[i+1:]), in)
			return
		case strings.HasPrefix(lower, "-f") && strings.HasPrefix("-file", lower):
			if i+1 < len(args) {
				s.RunFile(args[i+1], nil, in, "")
			}
			return
		case !strings.HasPrefix(lower, "-") && !strings.HasPrefix(lower, "/"):
			if i == 0 || !shell.OneOf(strings.ToLower(args[i-1].Text), "-executionpolicy", "-ep", "-windowstyle", "-w", "-version") {
				runPowerShell(s, shell.Join(args[i:]), in)
				return
			}
		}
	}
	s.Feed(in, "")
}

func runPowerShell(s *shell.Shell, text string, in shell.Stream) {
	if !s.Spend(2 * len(text)) {
		return
	}
	if strings.HasPrefix(text, "$") && !strings.ContainsAny(text, " \t\n;|&(`") {
		return // a variable is printed
	}
	src := newSource(s, text)
	lower := src.lower
	if !strings.Contains(lower, "-whatif") && newSource(s, emptyLiterals(text)).has(powershellDelete) && !strings.HasPrefix(lower, "get-help") {
		s.Add(detector.ForcedDelete)
	}
	if (strings.Contains(lower, "iex") || strings.Contains(lower, "invoke-expression")) &&
		(strings.Contains(lower, "download") || strings.Contains(lower, "iwr") || strings.Contains(lower, "irm") || strings.Contains(lower, "invoke-webrequest")) {
		s.Add(detector.RemoteExec)
	}
	if src.has(powershellSends) {
		s.Add(detector.Exfiltration)
	}
	s.Run(text, in)
}

func utf16LE(raw []byte) string {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i]) | uint16(raw[2*i+1])<<8
	}
	return string(utf16.Decode(units))
}
