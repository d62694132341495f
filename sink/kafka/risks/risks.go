// Package risks says by which settings Kafka may lose the records of a topic.
package risks

import (
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/audit"
)

// The settings that a topic needs to keep acknowledged records.
const (
	safeReplicas  = 3
	safeInSync    = 2
	safeRetention = 7 * 24 * time.Hour
	safeMessage   = audit.MaxRecord + 16<<10 // a record with its headers
)

// A Risk is a reason that a topic may lose records.
type Risk struct {
	Setting string // as Kafka names it; "replicas" for their number
	Because string // a sentence without input
}

// Of lists why a topic may lose records, by the replicas of the partition that has
// the fewest, and by its settings. It ignores settings that a broker does not return.
func Of(replicas int, settings map[string]string) (risks []Risk) {
	risk := func(setting, because string) { risks = append(risks, Risk{setting, because}) }
	number := func(name string) (int64, bool) {
		n, err := strconv.ParseInt(settings[name], 10, 64)
		return n, err == nil
	}
	if replicas < safeReplicas {
		risk("replicas", "fewer than 3 replicas")
	}
	if n, ok := number("min.insync.replicas"); ok && n < safeInSync {
		risk("min.insync.replicas", "min.insync.replicas is below 2")
	}
	if n, ok := number("retention.ms"); ok && n >= 0 && n < safeRetention.Milliseconds() {
		risk("retention.ms", "retention.ms is below 7 days")
	}
	if n, ok := number("retention.bytes"); ok && n >= 0 {
		risk("retention.bytes", "retention.bytes removes records of any age")
	}
	if n, ok := number("max.message.bytes"); ok && n < safeMessage {
		risk("max.message.bytes", "max.message.bytes is below the longest record, "+strconv.Itoa(safeMessage))
	}
	if settings["message.timestamp.type"] == "CreateTime" {
		risk("message.timestamp.type", "message.timestamp.type is CreateTime: what a host sends whose clock is behind is removed early")
	}
	if settings["unclean.leader.election.enable"] == "true" {
		risk("unclean.leader.election.enable", "unclean.leader.election.enable is true")
	}
	if strings.Contains(settings["cleanup.policy"], "compact") {
		risk("cleanup.policy", "cleanup.policy compacts it: of a session only the last record would stay")
	}
	return risks
}
