package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
)

// scriptedServer is a server that writes the file called args[0]: a part of it,
// up to a NUL, for each line feed that it reads. It ignores the content of its
// input and its other arguments.
func scriptedServer(args []string) int {
	script, err := os.ReadFile(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	in := bufio.NewReaderSize(os.Stdin, 256<<10)
	for {
		_, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return 0
		}
		var part []byte
		part, script, _ = bytes.Cut(script, []byte{0})
		if _, err := os.Stdout.Write(part); err != nil {
			return 1
		}
	}
}
