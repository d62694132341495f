package risk

import (
	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/audit"
)

// Bounds of a Result.
const (
	MaxDetections = 32  // if there are more, the last is "more"
	maxAt         = 200 // code points of a detection's At
)

// A Result is the risk of one call.
type Result struct {
	Category   Category
	Source     Source
	Conflict   bool
	Found      detector.Set      // of all detections, including those for which there was no room
	Failed     bool              // a defect kept the tool or the arguments from being read: they could do anything
	Detections []audit.Detection // At is as in "args.operations[0].arguments.keys", redacted
}

// Risk returns the member of a record.
func (r *Result) Risk() audit.Risk {
	return audit.Risk{Category: r.Category.String(), Level: r.Category.Level(), Source: r.Source.String(), Conflict: r.Conflict}
}

// raises returns the least category of a call that does d, if its tool has the
// category c.
func raises(d detector.Set, c Category) Category {
	const (
		destroys = detector.RecursiveDelete | detector.ForcedDelete | detector.EmptyFile | detector.GitHistory | detector.GitWorktree | detector.SQLUnfiltered | detector.DeviceWrite |
			detector.PermissionsAll | detector.Kill | detector.Shutdown | detector.Teardown | detector.RemoteExec | detector.DecodedExec | detector.Exfiltration | detector.Persistence | detector.PrivilegeEscalation | detector.Tunnel | detector.ProtectionOff | detector.AuditTampering | detector.ForkBomb | detector.Opaque |
			detector.CommandPattern
		runs = detector.CredentialRead | detector.PathBlocked | detector.NULByte | detector.UnderscoreArgument | detector.PrivateAddress | detector.EnvironmentName
	)
	switch {
	case d&destroys != 0, d&detector.PathBlocked != 0 && c >= Write:
		return Destructive
	case d&runs != 0, d&detector.PathSensitive != 0 && c >= Write:
		return Execute
	case d&(detector.PathSensitive|detector.PathTraversal) != 0:
		return Write
	}
	return 0
}
