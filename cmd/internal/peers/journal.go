package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// tools are the names that both servers know.
var tools = [...]string{"evil", "safe"}

// A journal outlives the server: one line for each call, a JSON list of the
// tool's name and its arguments.
type journal struct {
	// mu keeps lines whole: file may be a pipe, and a name longer than its
	// atomic write.
	mu   sync.Mutex
	file *os.File
}

func (j *journal) note(tool string, arguments any) error {
	if raw, ok := arguments.(json.RawMessage); ok && len(raw) > 0 && !json.Valid(raw) {
		arguments = "?" // arguments that only its SDK can read
	}
	if raw, ok := arguments.(json.RawMessage); ok && len(raw) == 0 {
		arguments = nil
	}
	line, err := json.Marshal([]any{tool, arguments})
	if err != nil {
		return fmt.Errorf("encoding %q: %w", tool, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("noting call: %w", err)
	}
	return nil
}
