package review

import (
	"strings"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
)

// A phrase describes the effect of a libtmux-mcp tool, with names of
// arguments in braces. "{a|b}" is the first that is present, and a part in
// square brackets is omitted if none of its arguments is.
//
// A phrase describes the request; the outcome shows whether it was done.
var phrases = map[string]string{
	"send_keys":           "typed {keys}[ into {pane_id|window_id|session_name}]",
	"send_keys_batch":     "typed into several panes",
	"paste_text":          "pasted {text}[ into {pane_id|session_name}]",
	"paste_buffer":        "pasted buffer {buffer_name}[ into {pane_id|session_name}]",
	"load_buffer":         "filled a buffer with {content}",
	"delete_buffer":       "deleted buffer {buffer_name}",
	"run_and_wait":        "ran {command}[ in {pane_id|session_name}]",
	"run_command":         "ran {command}[ in {pane_id|session_name}]",
	"pipe_pane":           "piped[ pane {pane_id|session_name}] to {output_path}",
	"set_environment":     "set variable {name}[ for session {session_name|session_id}]",
	"show_environment":    "read the variables[ of {session_name|session_id}]",
	"set_option":          "set option {option}[ to {value}][ for {target|session_name}]",
	"show_option":         "read option {option}",
	"capture_pane":        "read the screen[ of {pane_id|session_name}]",
	"snapshot_pane":       "read the screen[ of {pane_id|session_name}]",
	"search_panes":        "searched panes[ for {pattern}]",
	"wait_for_text":       "waited for text[ in {pane_id|session_name}]",
	"clear_pane":          "cleared[ pane {pane_id|session_name}]",
	"list_sessions":       "listed sessions",
	"list_windows":        "listed windows[ of {session_name|session_id}]",
	"list_panes":          "listed panes[ of {session_name|session_id|window_id}]",
	"get_pane_info":       "inspected[ pane {pane_id}]",
	"create_session":      "created session[ {session_name}][ with variables {environment}]",
	"create_window":       "created a window[ {window_name}][ in {session_name|session_id}][ with variables {environment}]",
	"split_window":        "split[ pane {pane_id|window_id|session_name}][ and ran {shell}][ with variables {environment}]",
	"respawn_pane":        "restarted[ pane {pane_id}][ with {shell}][ and variables {environment}]",
	"rename_session":      "renamed session[ {session_name}][ to {new_name}]",
	"rename_window":       "renamed a window[ of {session_name}][ to {new_name}]",
	"select_pane":         "selected[ pane {pane_id}]",
	"select_window":       "selected[ window {window_id|window_index}]",
	"resize_pane":         "resized[ pane {pane_id}]",
	"kill_pane":           "killed[ pane {pane_id}]",
	"kill_window":         "killed[ window {window_id|window_name}]",
	"kill_session":        "killed[ session {session_name|session_id}]",
	"kill_server":         "killed the tmux server",
	"resources/read":      "read resource {}",
	"prompts/get":         "got prompt {}",
	"completion/complete": "asked for a completion",
}

// narrate describes op.
func narrate(op audit.Operation) sentence {
	name := op.Tool
	if name == "" {
		name = op.Method
	}
	args := newTree(string(op.Args))
	get := func(names string) string {
		if names == "" {
			return op.Target
		}
		for name := range strings.SplitSeq(names, "|") {
			if v := args.member(name); v != "" {
				return v
			}
		}
		return ""
	}
	var s sentence
	if phrase, ok := phrases[name]; ok {
		s = fill(phrase, get)
	} else {
		s = append(say("called "), words{Text: name, Given: true, Name: true})
		if op.Target != "" {
			s = append(s, say(" on ", op.Target)...)
		}
		s = append(s, args.sample()...)
	}
	if op.Candidate {
		s = append(say("some servers read: "), s...)
	}
	return s
}

// fill puts arguments into a phrase.
func fill(phrase string, get func(string) string) (s sentence) {
	for phrase != "" {
		i := strings.IndexAny(phrase, "[{")
		if i < 0 {
			return append(s, words{Text: phrase})
		}
		if i > 0 {
			s = append(s, words{Text: phrase[:i]})
		}
		if phrase[i] == '{' {
			end := i + strings.IndexByte(phrase[i:], '}')
			v := get(phrase[i+1 : end])
			if v == "" {
				s = append(s, words{Text: "something"})
			} else {
				s = append(s, words{Text: v, Given: true})
			}
			phrase = phrase[end+1:]
			continue
		}
		end := i + strings.IndexByte(phrase[i:], ']')
		inner := phrase[i+1 : end]
		open, closing := strings.IndexByte(inner, '{'), strings.IndexByte(inner, '}')
		if v := get(inner[open+1 : closing]); v != "" {
			s = append(s, words{Text: inner[:open]}, words{Text: v, Given: true})
		}
		phrase = phrase[end+1:]
	}
	return s
}

// narrateLine describes a record of a list.
func narrateLine(l store.Line) sentence {
	switch l.Kind {
	case "call", "open":
		if l.Method == "" && l.Tool == "" && len(l.Anomalies) > 0 {
			return say("bytes that could not be read as a call: ", strings.Join(l.Anomalies, ", "))
		}
		s := narrate(audit.Operation{Method: l.Method, Tool: l.Tool, Target: l.Target, Args: audit.JSON(l.Args)})
		if l.Kind == "open" {
			s = append(s, words{Text: ", and waits for the answer"})
		}
		return s
	case "session_start":
		return say("session started")
	case "policy":
		return narratePolicy(l.Event)
	case "session_end":
		return say("session ended")
	case "gap":
		return say("calls could not be recorded")
	case "anomaly":
		return say("unexpected bytes: ", strings.Join(l.Anomalies, ", "))
	}
	return say("", l.Kind)
}

// policyEvents are what happened to a policy, in words.
var policyEvents = map[string]string{
	"loaded":         "policy came into force",
	"none":           "no policy is in force",
	"reload_failed":  "changed policy does not load; the old one stays in force",
	"always_added":   "tool is always allowed from now on",
	"always_removed": "tool is no longer always allowed",
}

// narratePolicy describes a record about a policy.
func narratePolicy(event string) sentence {
	if words, ok := policyEvents[event]; ok {
		return say(words)
	}
	return say("policy: ", strings.TrimSpace(event))
}
