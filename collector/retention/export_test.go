package retention

// Tables returns the names of tables whose rows become too old.
func Tables() (names []string) {
	for _, t := range tables() {
		names = append(names, t.name)
	}
	return names
}
