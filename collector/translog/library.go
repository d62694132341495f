package translog

import (
	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"k8s.io/klog/v2"
)

// LogLibrary sends to log what tessera logs, which else goes to standard error in
// another form. This is for the whole process: a program calls it once, before Open.
func LogLibrary(log *zap.Logger) {
	klog.SetLogger(logr.New(librarySink{log}))
}

// A librarySink is where klog's lines go. It reports warnings, such as a checkpoint
// that could not be published, as Info.
type librarySink struct{ log *zap.Logger }

// Init does nothing.
func (librarySink) Init(logr.RuntimeInfo) {}

// Enabled reports whether a level is logged: not those for debugging.
func (librarySink) Enabled(level int) bool { return level == 0 }

// Info logs a line.
func (s librarySink) Info(_ int, text string, _ ...any) {
	s.log.Info("tessera reported", zap.String("text", text))
}

// Error logs an error.
func (s librarySink) Error(err error, text string, _ ...any) {
	s.log.Error("tessera failed", zap.String("text", text), zap.Error(err))
}

// WithValues returns s: tessera has no values.
func (s librarySink) WithValues(...any) logr.LogSink { return s }

// WithName returns s: tessera has no names.
func (s librarySink) WithName(string) logr.LogSink { return s }
