package mcpproxy

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/approval/elicitation"
	"auditproxy/schemas/audit"
)

// has returns the approval that already holds for all operations.
func (a *approvals) has(list []operation) (given audit.Approval, ok bool) {
	for _, o := range list {
		if given, ok = a.hasOne(o); !ok {
			return audit.Approval{}, false
		}
	}
	return given, ok
}

// hasOne looks for an approval of one operation. It holds for calls that do
// nothing which the approved call did not do, at no higher risk: who approves "ls" for
// a session has not approved "rm -rf /", nor what the tool is once the server lists it
// as a destructive one.
func (a *approvals) hasOne(o operation) (audit.Approval, bool) {
	a.mu.Lock()
	list := a.session[o.about] // only grows
	if o.inner() {
		list = slices.Concat(list, a.session[about{tool: o.tool}])
	}
	a.mu.Unlock()
	for _, g := range list {
		if g.covers(o) && (g.while == "" || a.alwaysAllowed(g.while)) {
			return g.Approval, true
		}
	}
	if !a.files() {
		return audit.Approval{}, false
	}
	answer, err := a.lookAlways(o.tool)
	if err == nil && answer != nil && (len(o.detections) > 0 || !approval.Covers(answer.Level, o.level)) {
		answer, err = a.cfg.Files.Allows(o.tool, a.cfg.ServerKey, o.detections, o.level)
	}
	if err != nil || answer == nil {
		return audit.Approval{}, false
	}
	given := audit.Approval{Outcome: "approved", Scope: string(approval.Always), By: answer.By, User: answer.User, Channel: ChannelFiles}
	if given.By == "" {
		given.By = given.User
	}
	return given, true
}

// alwaysAllowed reports whether a tool has a lasting approval, which a person may have
// taken back.
func (a *approvals) alwaysAllowed(tool string) bool {
	answer, err := a.lookAlways(tool)
	return err == nil && answer != nil
}

// files reports whether the channel can ask.
func (a *approvals) files() bool {
	return a.cfg.Files != nil && slices.Contains(a.cfg.Channels, ChannelFiles)
}

func (g granted) covers(o operation) bool {
	return approval.Covers(g.level, o.level) && !slices.ContainsFunc(o.detections, func(word string) bool { return !slices.Contains(g.detections, word) })
}

// lookAlways returns a lasting approval of a tool, nil for none, and records a
// change of that once this session sees it.
func (a *approvals) lookAlways(tool string) (*approval.Answer, error) {
	answer, err := a.cfg.Files.Always(tool, a.cfg.ServerKey)
	is := answer != nil
	a.mu.Lock()
	// Once: it is looked at again and again while a call waits.
	if err != nil && err.Error() != a.logged {
		a.logged = err.Error()
		a.s.cfg.Log.Warn("lasting approval does not count", zap.String("tool", a.s.short(tool)), zap.Error(err))
	}
	was := a.always[tool]
	if is {
		a.always[tool] = true
	} else {
		delete(a.always, tool) // an agent may call tools of any name
	}
	a.mu.Unlock()
	switch {
	case is && !was:
		a.s.tellPolicy(func(g *gate) audit.Policy {
			return g.event("always_added", fmt.Sprintf("%s, approved by %s", tool, answer.User))
		})
	case was && !is:
		a.s.tellPolicy(func(g *gate) audit.Policy { return g.event("always_removed", tool) })
	}
	return answer, err
}

// accept keeps an approval where it holds for longer, and returns it. It holds for what
// the question has shown: for the tools and effects that were named, and for a batch of calls,
// which may be shown in part, only once.
func (a *approvals) accept(list []operation, q *approval.Question, given audit.Approval, scope approval.Scope) *audit.Approval {
	if scope == approval.Once {
		return &given
	}
	single := len(q.Calls)+q.More == 1
	if !single && scope == approval.Session {
		given.Scope = string(approval.Once)
	}
	if single {
		shown, _ := audit.ParseDetections(q.Calls[0].Detections)
		while := ""
		if scope == approval.Always {
			while = q.Calls[0].Subject()
		}
		if given.Channel == ChannelClient {
			shown = elicitation.Shown(shown)
		}
		a.mu.Lock()
		for _, o := range list {
			if o.inner() && !slices.Contains(q.Calls[0].Operations, a.s.short(o.tool)) {
				continue
			}
			named := slices.DeleteFunc(slices.Clone(o.detections), func(word string) bool {
				return !slices.ContainsFunc(shown, func(d audit.Detection) bool { return d.Detector == word })
			})
			a.session[o.about] = append(a.session[o.about], granted{given, named, o.level, while})
		}
		a.mu.Unlock()
	}
	if scope == approval.Always {
		for _, o := range list {
			a.lookAlways(o.tool)
		}
	}
	return &given
}
