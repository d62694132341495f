package translog

import (
	"context"
	"fmt"
	stdlog "log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// LogLibrary sends to log what tessera logs, which else goes to standard error in
// another form. This is for the whole process: a program calls it once, before Open.
func LogLibrary(log *zap.Logger) {
	l := &lines{log: log}
	klog.SetLogger(logr.New(librarySink{l}))
	// SetDefault takes the lines of package log too, which are of others.
	out, flags := stdlog.Writer(), stdlog.Flags()
	slog.SetDefault(slog.New(libraryHandler{l}))
	stdlog.SetOutput(out)
	stdlog.SetFlags(flags)
}

// lines are what tessera logs. On a disk that cannot be written, a checkpoint that is
// not published is one line each second, so a line that follows itself is not repeated
// within sayEvery.
type lines struct {
	log *zap.Logger

	mu   sync.Mutex
	last string    // owned by mu
	at   time.Time // when it was logged; owned by mu
}

const sayEvery = time.Minute

func (l *lines) report(text string) {
	if l.isNew(text) {
		l.log.Info("tessera reported", zap.String("text", text))
	}
}

func (l *lines) fail(text string, err error) {
	if l.isNew(text + "\n" + fmt.Sprint(err)) {
		l.log.Error("tessera failed", zap.String("text", text), zap.Error(err))
	}
}

func (l *lines) isNew(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line == l.last && time.Since(l.at) < sayEvery {
		return false
	}
	l.last, l.at = line, time.Now()
	return true
}

// A librarySink is where klog's lines go. It reports warnings, such as a checkpoint
// that could not be published, as Info.
type librarySink struct{ *lines }

// Init does nothing.
func (librarySink) Init(logr.RuntimeInfo) {}

// Enabled reports whether a level is logged: not those for debugging.
func (librarySink) Enabled(level int) bool { return level == 0 }

// Info logs a line.
func (s librarySink) Info(_ int, text string, _ ...any) { s.report(text) }

// Error logs an error.
func (s librarySink) Error(err error, text string, _ ...any) { s.fail(text, err) }

// WithValues returns s: tessera has no values.
func (s librarySink) WithValues(...any) logr.LogSink { return s }

// WithName returns s: tessera has no names.
func (s librarySink) WithName(string) logr.LogSink { return s }

// A libraryHandler is where slog's lines go, as those of klog do.
type libraryHandler struct{ *lines }

// Enabled reports whether a level is logged: not those for debugging.
func (libraryHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle logs a line with its attributes.
func (h libraryHandler) Handle(_ context.Context, r slog.Record) error {
	var text strings.Builder
	text.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		text.WriteString(" " + a.String())
		return true
	})
	if r.Level >= slog.LevelError {
		h.fail(text.String(), nil)
	} else {
		h.report(text.String())
	}
	return nil
}

// WithAttrs returns h: tessera has no such attributes.
func (h libraryHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns h: tessera has no groups.
func (h libraryHandler) WithGroup(string) slog.Handler { return h }

// A libraryError has a cause of which tessera kept the text alone.
type libraryError struct {
	error
	cause unix.Errno
}

// Unwrap returns both.
func (e libraryError) Unwrap() []error { return []error{e.error, e.cause} }

// withCause gives an error of tessera, which may have put its cause into a text, the
// cause that has a remedy.
func withCause(err error) error {
	if err == nil {
		return nil
	}
	for _, cause := range []unix.Errno{unix.ENOSPC, unix.EDQUOT, unix.EROFS} {
		if strings.HasSuffix(err.Error(), cause.Error()) {
			return libraryError{err, cause}
		}
	}
	return err
}
