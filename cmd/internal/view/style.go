package view

import (
	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
)

// Words shown in the outcome's place where there is no outcome yet.
const (
	outcomeOpen    = "open"    // 60 s without an answer
	outcomeRunning = "running" // no answer yet, and the session is alive
	outcomeLost    = "lost"    // no answer, and the session is dead and not recovered
)

func outcomeStyle(outcome string) terminal.Style {
	switch outcome {
	case string(audit.OutcomeOK):
		return terminal.Good
	case string(audit.OutcomeError):
		return terminal.Bad
	case string(audit.OutcomeUnknown), outcomeLost:
		return terminal.Alarm
	case outcomeRunning, outcomeOpen:
		return terminal.Notice
	}
	return terminal.Plain
}

// tierStyle knows the tiers of libtmux-mcp, old and new; others are plain.
func tierStyle(tier string) terminal.Style {
	switch tier {
	case "destructive", "teardown", "execute":
		return terminal.Bad
	case "mutating", "manage":
		return terminal.Warn
	}
	return terminal.Faint
}

func decisionStyle(word string) terminal.Style {
	switch word {
	case wordDenied:
		return terminal.Bad
	case wordWouldDeny, wordWouldAsk:
		return terminal.Warn
	case wordAsked:
		return terminal.Notice
	}
	return terminal.Good
}

func approvalStyle(outcome string) terminal.Style {
	if outcome == "approved" {
		return terminal.Good
	}
	return terminal.Bad
}

func riskStyle(level string) terminal.Style {
	switch level {
	case risk.Destructive.Level():
		return terminal.Bad
	case risk.Execute.Level():
		return terminal.Warn
	}
	return terminal.Plain
}
