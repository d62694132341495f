package store

import "context"

// Tenant returns the one tenant whose records the reader may see, "" if it is
// not restricted. An error means that the store cannot be read at all.
func (r *Reader) Tenant(ctx context.Context) (string, error) {
	row, err := askOne[struct {
		Tenant string `ch:"tenant"`
	}](ctx, r, "what this user may see", "SELECT getSettingOrDefault('SQL_audit_tenant', '') AS tenant", nil)
	return row.Tenant, err
}
