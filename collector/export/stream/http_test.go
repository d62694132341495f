package stream_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/stream"

	"github.com/google/go-cmp/cmp"
)

// siem is a receiver that keeps what it has taken.
type siem struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	answer func(w http.ResponseWriter, n int) (take bool) // n: the number of the request
}

func startSIEM(t *testing.T, answer func(w http.ResponseWriter, n int) bool) *siem {
	t.Helper()
	s := &siem{answer: answer}
	n := 0
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		n++
		if s.answer(w, n) {
			s.bodies = append(s.bodies, string(text))
			s.heads = append(s.heads, r.Header)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func takes(http.ResponseWriter, int) bool { return true }

// lines are the events that it has taken.
func (s *siem) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, b := range s.bodies {
		all = append(all, strings.Split(strings.TrimSuffix(b, "\n"), "\n")...)
	}
	return all
}

// TestBodies checks what is sent.
func TestBodies(t *testing.T) {
	list := records(t, 0, 5)
	for _, tt := range []struct {
		name    string
		config  stream.HTTP
		head    map[string]string
		batches []int
	}{
		{"lines", stream.HTTP{}, map[string]string{"Content-Type": "application/x-ndjson", "Content-Encoding": ""}, []int{5}},
		{"an array, compressed", stream.HTTP{Body: stream.Array, Gzip: true, Header: fixed("dd-api-key", "k")},
			map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip", "Dd-Api-Key": "k"}, []int{5}},
		{"another type", stream.HTTP{Header: fixed("Content-Type", "text/plain")}, map[string]string{"Content-Type": "text/plain"}, []int{5}},
		{"two events at once", stream.HTTP{BatchEvents: 2}, nil, []int{2, 2, 1}},
		{"as many bytes as two events", stream.HTTP{BatchBytes: 2*len(list[1].Raw) + 10}, nil, []int{2, 2, 1}},
		{"an array of two events", stream.HTTP{Body: stream.Array, BatchBytes: 2*len(list[1].Raw) + 10}, nil, []int{2, 2, 1}},
		{"fewer bytes than one event", stream.HTTP{BatchBytes: 1}, nil, []int{1, 1, 1, 1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startSIEM(t, takes)
			tt.config.URL = at(s.URL)
			w := must(t)(stream.NewHTTP(stream.Config{Encode: raw}, tt.config))
			if err := w.Send(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			var got []string
			var batches []int
			for _, body := range s.bodies {
				var events []string
				if tt.config.Body == stream.Array {
					var all []json.RawMessage
					if err := json.Unmarshal([]byte(body), &all); err != nil {
						t.Fatal(err)
					}
					for _, e := range all {
						events = append(events, string(e))
					}
				} else {
					events = strings.Split(strings.TrimSuffix(body, "\n"), "\n")
				}
				got, batches = append(got, events...), append(batches, len(events))
			}
			if diff := cmp.Diff(texts(list), got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.batches, batches); diff != "" {
				t.Errorf("batches (-want +got):\n%s", diff)
			}
			for name, want := range tt.head {
				if got := s.heads[0].Get(name); got != want {
					t.Errorf("header %s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestStatus checks which answers concern the events, and which the receiver.
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		status  int
		refused bool
		want    string // "": taken
	}{
		{200, false, ""}, {202, false, ""}, {204, false, ""},
		{400, true, "status 400"}, {413, true, "status 413"}, {422, true, "status 422"},
		{401, false, "check the headers"}, {403, false, "check the rights"}, {404, false, "check the path"}, {405, false, "does not take POST"},
		{301, false, "redirects"}, {307, false, "redirects"}, {415, false, "another body"},
		{408, false, "status 408"}, {429, false, "status 429"}, {500, false, "status 500"}, {503, false, "status 503"},
	} {
		s := startSIEM(t, func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
			return true
		})
		w := must(t)(stream.NewHTTP(stream.Config{Encode: raw}, stream.HTTP{URL: at(s.URL + "/secret")}))
		err := w.Send(t.Context(), records(t, 0, 1))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("status %d: error %v, want %q", tt.status, err, tt.want)
		}
		if errors.Is(err, receiver.ErrRefused) != tt.refused {
			t.Errorf("status %d: %v, want it to be about the events: %t", tt.status, err, tt.refused)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("status %d: %q has the address", tt.status, err)
		}
		if n := len(s.bodies); n != 1 {
			t.Errorf("status %d: %d requests, want 1", tt.status, n)
		}
	}
}

// TestEcho has a server that speaks no HTTP and answers with what was sent: that is not
// in the error.
func TestEcho(t *testing.T) {
	s := startSIEM(t, func(w http.ResponseWriter, _ int) bool {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return false
		}
		defer conn.Close()
		_, err = out.WriteString("POST /secret HTTP/1.1\r\nAuthorization: secret\r\n\r\n")
		if err := errors.Join(err, out.Flush()); err != nil {
			t.Error(err)
		}
		return false
	})
	w := must(t)(stream.NewHTTP(stream.Config{Encode: raw}, stream.HTTP{URL: at(s.URL + "/secret"), Header: fixed("Authorization", "secret")}))
	if err := w.Send(t.Context(), records(t, 0, 1)); err == nil || errors.Is(err, receiver.ErrRefused) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v, want one without the address", err)
	}
}

// TestFailures checks that nothing is lost to a receiver that fails without having
// taken the events, or having taken them.
func TestFailures(t *testing.T) {
	for _, taken := range []bool{false, true} {
		for _, how := range []string{"status", "cut"} {
			s := startSIEM(t, func(w http.ResponseWriter, n int) bool {
				if n%2 == 0 {
					return true
				}
				if how == "cut" {
					conn, _, err := http.NewResponseController(w).Hijack()
					if err == nil {
						err = conn.Close()
					}
					if err != nil {
						t.Error(err)
					}
				} else {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return taken
			})
			w := must(t)(stream.NewHTTP(stream.Config{Encode: raw}, stream.HTTP{URL: at(s.URL), BatchEvents: 2}))
			list := records(t, 0, 6)
			failed := 0
			for w.Send(t.Context(), list) != nil {
				if failed++; failed > 1 {
					// Each part alone, as after a refusal.
					break
				}
			}
			for i := 0; i < len(list); i += 2 {
				for w.Send(t.Context(), list[i:i+2]) != nil {
					failed++
				}
			}
			if failed == 0 {
				t.Errorf("taken %t, %s: no error", taken, how)
			}
			got := s.lines()
			for _, want := range texts(list) {
				if !slices.Contains(got, want) {
					t.Errorf("taken %t, %s: an event is lost: %s", taken, how, want)
				}
			}
		}
	}
}

// TestRetryAfter checks that the receiver is asked again only when it wants to be.
func TestRetryAfter(t *testing.T) {
	for _, after := range []string{"3600", "31536000", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		s := startSIEM(t, func(w http.ResponseWriter, n int) bool {
			if n > 1 {
				return true
			}
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
			return false
		})
		w := must(t)(stream.NewHTTP(stream.Config{Encode: raw}, stream.HTTP{URL: at(s.URL)}))
		list := records(t, 0, 1)
		if err := w.Send(t.Context(), list); err == nil || errors.Is(err, receiver.ErrRefused) {
			t.Errorf("%s: error %v, want one about the receiver", after, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := w.Send(ctx, list); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v, want to wait until the context ends", after, err)
		}
		cancel()
		if len(s.bodies) > 0 {
			t.Errorf("%s: the receiver was asked too early", after)
		}
	}
}

// TestEndlessAnswer checks that a receiver cannot fill the memory or hold a Send.
func TestEndlessAnswer(t *testing.T) {
	s := startSIEM(t, func(w http.ResponseWriter, _ int) bool {
		for i := 0; i < 1000; i++ {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		return true
	})
	w := must(t)(stream.NewHTTP(stream.Config{Encode: raw}, stream.HTTP{URL: at(s.URL), Timeout: 10 * time.Second}))
	if err := w.Send(t.Context(), records(t, 0, 1)); err != nil {
		t.Error(err)
	}
}

// fixed returns headers that do not change.
func at(address string) func() string { return func() string { return address } }

func fixed(namesAndValues ...string) func() http.Header {
	h := http.Header{}
	for i := 0; i < len(namesAndValues); i += 2 {
		h[namesAndValues[i]] = []string{namesAndValues[i+1]}
	}
	return func() http.Header { return h }
}
