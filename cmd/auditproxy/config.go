package main

// A config is the configuration in force, checked.
type config struct {
	spoolDir string
}

// load reads the configuration: the administrator's file, the user's, the
// environment, the flags.
func (a *app) load() (config, error) { return config{}, nil }
