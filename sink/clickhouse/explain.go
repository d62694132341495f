package clickhouse

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Explain returns err, an error of the driver, with a remedy and without the
// request's URL, which is a page of settings. errors.Is and errors.As work as
// for err.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	var request *url.Error
	var answer *clickhouse.HTTPError
	switch {
	case errors.As(err, &request):
		err = request.Err
	case errors.As(err, &answer):
		err = answer
	}
	if errors.Is(err, clickhouse.ErrAcquireConnTimeout) {
		err = noConnection{err}
	}
	if what := remedy(err); what != "" {
		return fmt.Errorf("%w: %s", err, what)
	}
	return err
}

// A noConnection is ErrAcquireConnTimeout of a server that does not answer, without the
// driver's advice to allow more connections.
type noConnection struct{ error }

func (noConnection) Error() string   { return "no connection in time" }
func (n noConnection) Unwrap() error { return n.error }

// remedy returns the remedy of err, "" if there is none or err contains it.
func remedy(err error) string {
	var (
		packet    *clickhouse.OpError
		plain     tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		dns       *net.DNSError
		op        *net.OpError
		answer    *clickhouse.HTTPError
	)
	switch code := codeOf(err); code {
	case 192, 193, 194, 516:
		return "check clickhouse.user and its password"
	case 720: // USER_EXPIRED, of a connection that was open before
		return "extend VALID UNTIL of clickhouse.user"
	case 164, 497:
		return "a user with that right has to grant it, or to run auditcollector migrate"
	case 16: // NO_SUCH_COLUMN_IN_TABLE, of an insert
		return "add the column again, of the type that it has where auditcollector migrate makes the tables in another database"
	case 81: // UNKNOWN_DATABASE
		return "auditcollector run or migrate makes it"
	case 243: // NOT_ENOUGH_SPACE
		return "free space on its disk: a shorter retention.events does that after a day at the earliest"
	case 0:
	default: // the server's own words, except about replicas and a disk
		if strings.Contains(err.Error(), "Read-only file system") {
			return "mount its disk for writing; after an error of the disk, dmesg has the reason"
		}
		return cmp.Or(replicationCodes[code], clusterCodes[code])
	}
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &authority):
		return "set clickhouse.tls.ca_file to the authority that signed the server's certificate"
	case errors.As(err, &invalid):
		return "renew the server's certificate, or correct the clock of this host"
	case errors.As(err, &name):
		return "set clickhouse.tls.server_name to the name in the server's certificate"
	case errors.As(err, &plain), errors.As(err, &alert), errors.As(err, &packet), errors.As(err, &answer), errors.Is(err, http.ErrSchemeMismatch),
		strings.Contains(err.Error(), "unexpected packet"): // the driver has no type for it
		return "check that clickhouse.tls.enabled, clickhouse.protocol and the port match"
	case errors.As(err, &op) && op.Net == "unix" && errors.Is(err, os.ErrPermission):
		return "the local engine is another user's: ask as that user"
	case errors.As(err, &op) && op.Net == "unix" && !op.Timeout():
		return "the local engine does not run"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the server restarts, or clickhouse.tls.enabled, clickhouse.protocol and the port do not match"
	case errors.As(err, &dns):
		return "correct clickhouse.addr, or the name service"
	case errors.As(err, &op) && op.Op == "dial":
		return "start ClickHouse there, or set clickhouse.addr to where it runs"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		return "the server hangs, or is not ClickHouse: check its load, and clickhouse.addr"
	}
	return ""
}

// codeOf returns ClickHouse's code of err, 0 if it has none.
func codeOf(err error) int32 {
	var e *clickhouse.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// Outdated reports whether err is that a table or a column is not there, as in tables of
// an older version. A statement of this program names no others.
func Outdated(err error) bool {
	code := codeOf(err)
	return code == 47 || code == 60 // UNKNOWN_IDENTIFIER, UNKNOWN_TABLE
}

// notThereCodes are UNKNOWN_TABLE and UNKNOWN_DATABASE.
var notThereCodes = []int32{60, 81}

// noUsersCodes are the codes of a server without access management, or
// without the right to it: READONLY, ACCESS_STORAGE_READONLY, ACCESS_DENIED,
// ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND, NOT_IMPLEMENTED,
// SUPPORT_IS_DISABLED.
var noUsersCodes = []int32{164, 495, 497, 514, 48, 344}

var (
	// replicationCodes are about replicas, never about data. An insert that gets
	// one is sent again with its token, so in neither list above: the rows may be
	// stored already, on this replica or on others.
	replicationCodes = map[int32]string{
		242: "the server has no contact to Keeper, or lost its replica there: check both, and system.replicas",                                   // TABLE_IS_READ_ONLY
		285: "start the other replicas, or set clickhouse.insert_quorum to fewer",                                                                // TOO_FEW_LIVE_REPLICAS
		286: "an earlier insert waits for the other replicas: check that they run, and their system.replicas",                                    // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
		319: "the other replicas have not confirmed the rows, which are neither stored nor lost: check that they run, and their system.replicas", // UNKNOWN_STATUS_OF_INSERT
	}
	// clusterCodes are those of a cluster that an administrator has to correct.
	clusterCodes = map[int32]string{
		253: "another server has the same name: make clickhouse.replica_name, with the macros of each server, differ",                                              // REPLICA_ALREADY_EXISTS
		342: "the replica was not made like the others: drop its table, and run auditcollector migrate, which makes it from SHOW CREATE TABLE of a living replica", // METADATA_MISMATCH
		392: "configure distributed_ddl in the servers' configuration",                                                                                             // QUERY_IS_PROHIBITED
		701: "set clickhouse.cluster to a name in the servers' remote_servers",                                                                                     // CLUSTER_DOESNT_EXIST
	}
)
