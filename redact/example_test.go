package redact_test

import (
	"bytes"
	"fmt"

	"auditproxy/redact"
)

// A host has one key of 32 random bytes; see spool.LoadKey.
var exampleKey = bytes.Repeat([]byte{7}, 32)

func ExampleRedactor_AppendArgs() {
	r, err := redact.New(redact.Config{Key: exampleKey})
	if err != nil {
		fmt.Println(err)
		return
	}
	arguments := `{"pane_id":"%1","keys":"hunter2","note":"PASSWORD=hunter2 make","output_path":"/tmp/pane.log"}`
	summary, flags := r.AppendArgs(nil, []byte(arguments))
	fmt.Printf("%s\n", summary)
	fmt.Println("cut:", flags&redact.Cut != 0)
	// Output:
	// {"pane_id":"%1","keys":{"len":7,"hmac_sha256_prefix":"43c3bd85998c243f"},"note":"PASSWORD=[redacted len=7 hmac=43c3bd85998c243f] make","output_path":"/tmp/pane.log"}
	// cut: false
}

func ExampleRedactor_AppendText() {
	r, err := redact.New(redact.Config{Key: exampleKey})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A text stays a text: only the credential in it is replaced.
	fmt.Printf("%s\n", r.AppendText(nil, []byte("https://ann:hunter2@example.com/x")))
	// Output:
	// https://ann:[redacted len=7 hmac=43c3bd85998c243f]@example.com/x
}

func ExampleRedactor_AppendDigest() {
	r, err := redact.New(redact.Config{Key: exampleKey})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Equal values have equal digests, so a holder of the key can look one up.
	// Another domain gives another digest.
	fmt.Printf("%s\n", r.AppendDigest(nil, redact.Argument, []byte("hunter2")))
	fmt.Printf("%s\n", r.AppendDigest(nil, redact.ErrorText, []byte("hunter2")))
	// Output:
	// {"len":7,"hmac_sha256_prefix":"43c3bd85998c243f"}
	// {"len":7,"hmac_sha256_prefix":"841366350a3dc517"}
}
