// Command kafkatopics creates topics at a Kafka broker of this machine, for
// trying auditproxy.
//
//	kafkatopics ADDR NAME...
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"auditproxy/sink/kafka/kafkatest"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: kafkatopics ADDR NAME...")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	broker := kafkatest.Broker{Addr: os.Args[1]}
	for _, name := range os.Args[2:] {
		if err := broker.CreateTopic(ctx, kafkatest.Topic{Name: name}); err != nil {
			fmt.Fprintf(os.Stderr, "kafkatopics: %v\n", err)
			os.Exit(1)
		}
		fmt.Printf("made topic %s\n", name)
	}
}
