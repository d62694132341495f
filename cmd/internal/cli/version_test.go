package cli

import (
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	for _, tt := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{built("v1.2.0"), "v1.2.0"},
		{built(""), "(devel)"},
		{built("(devel)", revision), "(devel) 0123456789ab"},
		{built("(devel)", revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "(devel) 0123456789ab modified"},
		{built("(devel)", debug.BuildSetting{Key: "vcs.revision", Value: "short"}, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), "(devel) short"},
	} {
		if got := describe(tt.info); got != tt.want {
			t.Errorf("describe = %q, want %q", got, tt.want)
		}
	}
}
