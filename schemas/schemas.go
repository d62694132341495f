// Package schemas is the published artefacts, embedded.
package schemas

import _ "embed"

//go:embed record.v1.schema.json
var recordV1 []byte

// RecordV1 returns the JSON Schema (draft 2020-12) of one line of the audit
// trail, see audit.Record.
func RecordV1() []byte { return append([]byte(nil), recordV1...) }
