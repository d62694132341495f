package clickhouse

import (
	"strings"
	"testing"
)

func TestMergeBound(t *testing.T) {
	const little, most = "max_bytes_to_merge_at_max_space_in_pool = 134217728", "max_bytes_to_merge_at_max_space_in_pool = 2147483520"
	pool := ", number_of_free_entries_in_pool_to_lower_max_size_of_merge = 2"
	for _, tt := range []struct {
		has    string // settings of the table
		memory uint64
		want   string
	}{
		{"", 0, ""},
		{"", 1 << 30, "MODIFY SETTING " + little + pool},
		{little, 1 << 30, "MODIFY SETTING " + little + pool},
		{little + pool, 1 << 30, ""},
		{little + pool + "5", 1 << 30, "MODIFY SETTING " + little + pool},
		{most + pool, 1 << 30, "MODIFY SETTING " + little + pool},
		{"", 16<<30 - 1024, "MODIFY SETTING " + most + pool},
		{little + pool, 0, ""},
		{"", 16 << 30, ""},
		{little, 16 << 30, ""}, // an administrator's
		{little + pool, 16 << 30, "RESET SETTING max_bytes_to_merge_at_max_space_in_pool" + strings.TrimSuffix(pool, " = 2")},
	} {
		create := "CREATE TABLE audit.events (v UInt8) ENGINE = MergeTree SETTINGS index_granularity = 8192, " + tt.has
		if got := mergeBound(create, tt.memory); got != tt.want {
			t.Errorf("%q with %d bytes: %q, want %q", tt.has, tt.memory, got, tt.want)
		}
	}
}
