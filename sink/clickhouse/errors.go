package clickhouse

import (
	"errors"
	"fmt"
	"slices"

	"auditproxy/collector/ingest"
)

// Error codes of ClickHouse (src/Common/ErrorCodes.cpp). Codes in no
// list are retried: waiting for ever is visible, giving up loses records.
var (
	// poisonCodes are about the data itself.
	poisonCodes = []int32{
		6,   // CANNOT_PARSE_TEXT
		26,  // CANNOT_PARSE_QUOTED_STRING
		27,  // CANNOT_PARSE_INPUT_ASSERTION_FAILED
		33,  // CANNOT_READ_ALL_DATA
		38,  // CANNOT_PARSE_DATE
		41,  // CANNOT_PARSE_DATETIME
		53,  // TYPE_MISMATCH
		69,  // ARGUMENT_OUT_OF_BOUND
		70,  // CANNOT_CONVERT_TYPE
		117, // INCORRECT_DATA
		131, // TOO_LARGE_STRING_SIZE
		349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
		469, // VIOLATED_CONSTRAINT
		691, // UNKNOWN_ELEMENT_OF_ENUM
	}
	// oversizeCodes are about an insert that is too large for the server.
	oversizeCodes = []int32{
		241, // MEMORY_LIMIT_EXCEEDED
	}
	// configurationCodes need an administrator.
	configurationCodes = []int32{
		16,  // NO_SUCH_COLUMN_IN_TABLE
		20,  // NUMBER_OF_COLUMNS_DOESNT_MATCH
		47,  // UNKNOWN_IDENTIFIER
		60,  // UNKNOWN_TABLE
		81,  // UNKNOWN_DATABASE
		115, // UNKNOWN_SETTING
		164, // READONLY
		192, // UNKNOWN_USER
		193, // WRONG_PASSWORD
		194, // REQUIRED_PASSWORD
		195, // IP_ADDRESS_NOT_ALLOWED
		497, // ACCESS_DENIED
		516, // AUTHENTICATION_FAILED
		720, // USER_EXPIRED
	}
)

// Classify adds the action and a remedy to err, and gives it a class.
func Classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	class := ingest.Retry
	var own *ingest.Error
	if errors.As(err, &own) {
		class = own.Class
	}
	switch code := codeOf(err); {
	case slices.Contains(poisonCodes, code):
		class = ingest.Poison
	case slices.Contains(oversizeCodes, code):
		class = ingest.Oversize
	case slices.Contains(configurationCodes, code), clusterCodes[code] != "":
		class = ingest.Configuration
	}
	return &ingest.Error{Class: class, Err: fmt.Errorf("%s: %w", doing, Explain(err))}
}
