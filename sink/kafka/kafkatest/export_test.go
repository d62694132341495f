package kafkatest

// HasNoLeader is hasNoLeader.
func HasNoLeader(err error) bool { return hasNoLeader(err) }
