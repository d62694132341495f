package cli

import (
	"cmp"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogKeys are the keys that configure a program's log.
var LogKeys = []Key{
	{Name: "log.level", Kind: Choice, Default: "warn", Choices: []string{"debug", "info", "warn", "error"}, Usage: "least severe message that is logged to standard error"},
	{Name: "log.format", Kind: Choice, Default: "console", Choices: []string{"console", "json"}, Usage: "form of the messages"},
}

// NewLogger returns a logger that writes to w as the values of LogKeys
// configure.
func NewLogger(w io.Writer, v Values) *zap.Logger {
	encoder, level := logFormat(v)
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}

// logFormat returns the configured format of messages.
func logFormat(v Values) (zapcore.Encoder, zapcore.Level) {
	level, err := zapcore.ParseLevel(cmp.Or(v.String("log.level"), "warn"))
	if err != nil {
		level = zapcore.WarnLevel
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	c.EncodeDuration = zapcore.StringDurationEncoder
	if v.String("log.format") == "json" {
		return zapcore.NewJSONEncoder(c), level
	}
	return zapcore.NewConsoleEncoder(c), level
}
