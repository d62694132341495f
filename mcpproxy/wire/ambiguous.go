package wire

import "crypto/sha256"

// IsAmbiguous reports whether two servers could read a call of a tool with these params
// differently, as a proxy finds that in the line of a client.
func IsAmbiguous(params []byte) bool {
	line := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`), params...)
	line = append(line, "}\n"...)
	q := NewRequests(Config{Hash: sha256.New})
	defer q.Close()
	var a Anomaly
	look := func(frames []Frame) {
		for _, f := range frames {
			a |= f.Anomalies
		}
	}
	for len(line) > 0 {
		n := copy(q.Space(), line)
		line = line[n:]
		look(q.Scan(n))
		for q.More() {
			look(q.Scan(0))
		}
	}
	look(q.End())
	return a&Undecidable != 0 || HasDuplicates(params)
}
