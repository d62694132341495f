package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

func logValues(t *testing.T, args ...string) Values {
	t.Helper()
	flags := pflag.NewFlagSet("prog", pflag.ContinueOnError)
	AddFlags(flags, LogKeys)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("parsing flags: %v", err)
	}
	v, problems := Load(Config{Program: "prog", Keys: LogKeys, Flags: flags})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestLoggerLevel(t *testing.T) {
	for _, tt := range []struct {
		values Values
		want   string
	}{
		{Values{}, "WE"},
		{logValues(t), "WE"},
		{logValues(t, "--log-level=debug"), "DIWE"},
		{logValues(t, "--log-level=error"), "E"},
	} {
		var out strings.Builder
		log := NewLogger(&out, tt.values)
		log.Debug("D")
		log.Info("I")
		log.Warn("W")
		log.Error("E")
		var got string
		for line := range strings.Lines(out.String()) {
			got += strings.Fields(line)[2]
		}
		if got != tt.want {
			t.Errorf("level %q logs %q, want %q", tt.values.String("log.level"), got, tt.want)
		}
	}
}

func TestLoggerJSON(t *testing.T) {
	var out strings.Builder
	NewLogger(&out, logValues(t, "--log-format=json")).Warn("message", zap.Int("n", 1))
	var line struct {
		Level, Msg string
		N          int
	}
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if line.Level != "warn" || line.Msg != "message" || line.N != 1 {
		t.Errorf("logged %s", out.String())
	}
}
