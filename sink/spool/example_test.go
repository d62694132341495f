package spool_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// Example writes a record to a session and reads it back, as a consumer does.
func Example() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	session, err := spool.Create(spool.Config{Dir: dir}, audit.NewID(time.Now()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	line := audit.AppendRecord(nil, &audit.Record{
		Kind: audit.KindCall, RecordID: audit.NewID(time.Now()), SessionID: session.ID(), CallNo: 1,
		TS: time.Now(), Tool: "kill_pane", Outcome: audit.OutcomeOK,
	})
	pos, err := session.Append(line, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Before the sync a consumer does not see the line.
	fmt.Println("synced:", session.Wait(pos, 0))

	consumer, err := spool.OpenConsumer(spool.ReaderConfig{Dir: dir, Session: session.ID()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer consumer.Close()
	for {
		item, err := consumer.Next()
		if errors.Is(err, io.EOF) {
			break // until more is written
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := audit.Parse(item.Line)
		fmt.Println(r.Tool, r.Outcome, item.Damage, err)
		// Once the record is safe elsewhere:
		if err := consumer.Commit(item.End()); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// synced: true
	// kill_pane ok intact <nil>
}
