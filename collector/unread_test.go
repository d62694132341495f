package collector

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/brokers"
)

// TestUnread checks the age of what waits in a partition: since it was first seen,
// whether or not anything is acknowledged since.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u unread
		one, other := brokers.Partition{Topic: "t", Number: 0}, brokers.Partition{Topic: "t", Number: 1}
		want := func(what string, age time.Duration) {
			t.Helper()
			if got := u.age(); got != age {
				t.Errorf("%s: the oldest is %v old, want %v", what, got, age)
			}
		}
		u.ack(one, -1)
		u.see(one, 5, 5)
		want("an empty log", 0)
		u.see(one, 5, 10)
		<-time.After(time.Minute)
		u.see(one, 5, 20)
		want("nothing acknowledged", time.Minute)
		u.ack(one, 7)
		want("a part of it acknowledged", time.Minute)
		u.ack(one, 10)
		want("what came first acknowledged", 0)
		<-time.After(time.Hour) // the brokers do not answer
		want("an outage", time.Hour)
		u.ack(one, 7) // a rebalance: the member begins where it last committed
		u.keep(map[any]bool{one: true})
		want("after a rebalance", time.Hour)
		u.see(other, 0, 1)
		u.keep(map[any]bool{other: true})
		want("when another member has it", 0)
		u.see(one, 0, 30)
		<-time.After(time.Minute)
		u.ack(one, 30)
		u.see(one, 0, 2)
		want("a topic made again", time.Minute) // of the other
		u.ack(other, 1)
		want("its new record", 0)
		for end := range int64(10 * maxEnds) {
			u.see(other, 0, 2+end)
			<-time.After(time.Second)
		}
		want("far behind", 10*maxEnds*time.Second)
		if n := len(u.of[other].ends); n > maxEnds {
			t.Errorf("keeps %d ends", n)
		}
	})
}

// TestSharedState has many goroutines use what partitions and metrics share. The race
// detector, or the runtime, reports a lock that is missing.
func TestSharedState(t *testing.T) {
	var u unread
	var b backlogs
	var h health
	var a unacked
	var wg sync.WaitGroup
	for key := range 4 {
		for _, use := range []func(n int64){
			func(n int64) { u.ack(key, n) },
			func(n int64) { u.see(key, 0, 2*n) },
			func(int64) { u.keep(map[any]bool{key: true, 1: true}) },
			func(int64) { u.age() },
			func(n int64) { b.set(key, n) },
			func(int64) { b.forget(key) },
			func(int64) { b.clear() },
			func(int64) { b.total() },
			func(n int64) { h.tell(key, "part", []error{nil, errors.New("fails")}[n%2]) },
			func(int64) { h.failures() },
			func(int64) { a.add(time.Now()) },
			func(int64) { a.clear() },
			func(int64) { a.age() },
		} {
			wg.Go(func() {
				for n := range int64(200) {
					use(n)
				}
			})
		}
	}
	wg.Wait()
	if b.clear(); b.total() != 0 {
		t.Errorf("%d records wait in nothing", b.total())
	}
}
