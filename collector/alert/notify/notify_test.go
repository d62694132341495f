package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/alert/notify"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/tools/txtar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An outbox is the part of the store that deliveries need.
type outbox struct {
	mu        sync.Mutex
	alerts    []alert.Alert
	delivered map[string]bool // receiver and id
	fail      int             // that many calls of InsertDeliveries fail, and store nothing
	inserts   int             // calls of it
	log       *zap.Logger     // of the notifier
}

func (o *outbox) RegisterReceiver(context.Context, string, string, []string) (time.Time, error) {
	return time.Now(), nil
}

func (o *outbox) Undelivered(_ context.Context, receiver string, after alert.Alert, limit int) (due []alert.Alert, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.alerts {
		later := a.StoredAt.After(after.StoredAt) || a.StoredAt.Equal(after.StoredAt) && a.ID > after.ID
		if later && !o.delivered[receiver+a.ID] && len(due) < limit {
			due = append(due, a)
		}
	}
	return due, nil
}

func (o *outbox) InsertDeliveries(ctx context.Context, receiver string, ids []string, state string) error {
	if state == "started" {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inserts++
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.fail > 0 {
		o.fail--
		return errors.New("the store failed")
	}
	for _, id := range ids {
		o.delivered[receiver+id] = true
	}
	return nil
}

// store stores an alert as this program does, or as another one.
func (o *outbox) store(n *notify.Notifier, id string) {
	a := alert.Alert{ID: id, StoredAt: time.Now()}
	o.mu.Lock()
	o.alerts = append(o.alerts, a)
	o.mu.Unlock()
	if n != nil {
		n.Stored([]alert.Alert{a})
	}
}

// A receiver fails as answer says.
type receiver struct {
	mu     sync.Mutex
	got    []string
	answer func(id string) error
}

func (r *receiver) Name() string { return "r" }

func (r *receiver) Send(_ context.Context, a alert.Alert) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, a.ID)
	return r.answer(a.ID)
}

func (r *receiver) sent() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// start runs a notifier with one receiver until the test's bubble ends.
func start(t *testing.T, o *outbox, r notify.Receiver, metrics ...*prometheus.Registry) (n *notify.Notifier, stop func()) {
	t.Helper()
	c := notify.Config{Outbox: o, Receivers: []notify.Receiver{r}, Log: o.log}
	for _, m := range metrics {
		c.Metrics = m
	}
	n, err := notify.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return n, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// wait lets the bubble's time pass.
func wait(d time.Duration) { <-time.After(d) }

func TestDelivery(t *testing.T) {
	away := errors.New("nothing gets through")
	count := func(n int, err error) func(string) error {
		return func(string) error {
			if n--; n >= 0 {
				return err
			}
			return nil
		}
	}
	for _, tt := range []struct {
		name   string
		answer func(string) error
		fail   int
		want   []string // in what order what was sent, in an hour
	}{
		{"takes all", count(0, nil), 0, []string{"a", "b", "c"}},
		{"away twice", count(2, away), 0, []string{"a", "a", "a", "b", "c"}},
		{"refuses one once", func() func(string) error {
			refused := false
			return func(id string) error {
				if id == "b" && !refused {
					refused = true
					return notify.ErrRefused
				}
				return nil
			}
		}(), 0, []string{"a", "b", "c", "b"}},
		{"has it, and the store does not know", count(0, nil), 1, []string{"a", "b", "c"}},
		{"has the first, is away once, and the store does not know", func() func(string) error {
			failed := false
			return func(id string) error {
				if id == "b" && !failed {
					failed = true
					return away
				}
				return nil
			}
		}(), 1, []string{"a", "b", "b", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &outbox{delivered: map[string]bool{}, fail: tt.fail}
				r := &receiver{answer: tt.answer}
				n, stop := start(t, o, r)
				synctest.Wait()
				for _, id := range []string{"a", "b", "c"} {
					o.store(nil, id)
				}
				n.Stored(o.alerts)
				wait(time.Hour)
				stop()
				if diff := cmp.Diff(tt.want, r.got); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A slow receiver needs a tenth of a second for an alert, and counts them.
type slow struct{ sent *atomic.Int64 }

func (slow) Name() string { return "r" }

func (s slow) Send(ctx context.Context, _ alert.Alert) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		s.sent.Add(1)
		return nil
	}
}

// TestFlood has thousands of alerts at once, as an agent can raise them: few inserts note
// what was sent, at most a second's deliveries are not noted, and an orderly end notes all.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{delivered: map[string]bool{}}
		var sent atomic.Int64
		n, stop := start(t, o, slow{&sent})
		const alerts = 3000
		for i := range alerts {
			o.store(n, fmt.Sprintf("%04d", i))
		}
		delivered := func() int {
			o.mu.Lock()
			defer o.mu.Unlock()
			return len(o.delivered)
		}
		for range 100 {
			wait(time.Second)
			if sent, noted := int(sent.Load()), delivered(); sent-noted > 12 {
				t.Fatalf("%d of %d that were sent are noted", noted, sent)
			}
		}
		wait(500 * time.Millisecond)
		stop()
		if sent, noted := int(sent.Load()), delivered(); sent != noted || sent < 900 {
			t.Errorf("at the end %d of %d that were sent are noted", noted, sent)
		}
		if o.inserts > 105 {
			t.Errorf("%d inserts noted what was sent in 100 seconds", o.inserts)
		}
	})
}

// TestPoison has one alert among many that is always refused.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		o := &outbox{delivered: map[string]bool{}, log: zap.New(core)}
		r := &receiver{answer: func(id string) error {
			if id == "poison" {
				return notify.ErrRefused
			}
			return nil
		}}
		n, stop := start(t, o, r)
		o.store(n, "poison")
		wait(24 * time.Hour)
		o.store(n, "z")
		wait(time.Hour)
		stop()
		if !slices.Contains(r.got, "z") || r.got[len(r.got)-1] == "z" {
			t.Errorf("sent %d, the last %q: want z delivered and the other tried again", len(r.got), r.got[len(r.got)-1])
		}
		if len(r.got) > 600 {
			t.Errorf("sent %d times in 25 hours, want some back-off", len(r.got))
		}
		if n := logged.FilterMessage("alerts wait for a receiver").Len(); n != len(r.got)-1 {
			t.Errorf("%d of %d refusals are logged", n, len(r.got)-1)
		}
	})
}

// TestRefusalDelaysNoOther has an alert that is always refused, for hours: others are
// sent within seconds all the same, and once.
func TestRefusalDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{delivered: map[string]bool{}}
		r := &receiver{answer: func(id string) error {
			if id == "poison" || id == "more" {
				return notify.ErrRefused
			}
			return nil
		}}
		registry := prometheus.NewRegistry()
		n, stop := start(t, o, r, registry)
		o.store(n, "poison")
		wait(time.Hour)
		o.store(n, "more")
		var want, got []string
		for i := range 20 {
			for _, by := range []*notify.Notifier{n, nil} { // as found here, and by another program that is gone
				id := fmt.Sprint(i, by == n)
				o.store(by, id)
				want = append(want, id)
				if by == nil {
					wait(2 * time.Minute)
				}
				wait(6 * time.Second)
				if !slices.Contains(r.sent(), id) {
					t.Errorf("%s is not sent within 6 seconds", id)
				}
			}
		}
		if age := gathered(t, registry, "auditcollector_alert_outbox_seconds")["r"]; age < 3600 {
			t.Errorf("the oldest alert that waits is %v seconds old, want that of the refused one", age)
		}
		stop()
		refusals := 0
		for _, id := range r.got {
			if id == "poison" || id == "more" {
				refusals++
			} else {
				got = append(got, id)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		if refusals < 20 || refusals > 100 {
			t.Errorf("sent refused alerts %d times in two hours, want some back-off", refusals)
		}
	})
}

// TestOutboxAge has a receiver that is away, hangs and comes back: the age of what
// waits grows meanwhile, and attempts are counted by their outcome.
func TestOutboxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{delivered: map[string]bool{}}
		var answer atomic.Pointer[error]
		away := errors.New("nothing gets through")
		refuses := notify.ErrRefused
		answer.Store(&away)
		r := &receiver{answer: func(string) error {
			if err := answer.Load(); err != nil {
				return *err
			}
			wait(time.Minute) // it hangs, and then takes it
			return nil
		}}
		registry := prometheus.NewRegistry()
		n, stop := start(t, o, r, registry)
		want := func(what string, age float64) {
			t.Helper()
			if got := gathered(t, registry, "auditcollector_alert_outbox_seconds")["r"]; got < age || got > age+1 {
				t.Errorf("%s: the oldest is %v seconds old, want %v", what, got, age)
			}
		}
		wait(time.Minute)
		want("nothing waits", 0)
		o.store(n, "a")
		wait(time.Hour)
		want("away for an hour", 3600)
		o.store(n, "b")
		wait(time.Second)
		want("another waits", 3601)
		answer.Store(&refuses)
		wait(time.Hour)
		want("the first is refused", 7201)
		answer.Store(nil)
		wait(10 * time.Minute)
		want("all is delivered", 0)
		o.store(n, "c")
		wait(30 * time.Second)
		want("it hangs", 30)
		wait(time.Minute)
		want("it has it", 0)
		stop()
		got := gathered(t, registry, "auditcollector_alert_deliveries_total")
		if got["delivered"] != 3 || got["failed"] < 5 || got["refused"] < 5 {
			t.Errorf("deliveries %v", got)
		}
	})
}

// gathered returns the values of a counter or a gauge by their first label.
func gathered(t *testing.T, r *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				values[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return values
}

// TestSince sends what was stored from the millisecond on in which the receiver became
// known, as the store's times have no finer part, and nothing older.
func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait(500 * time.Microsecond)
		o := &outbox{delivered: map[string]bool{}}
		r := &receiver{answer: func(string) error { return nil }}
		n, stop := start(t, o, r)
		o.mu.Lock()
		o.alerts = []alert.Alert{{ID: "older", StoredAt: time.Now().Add(-time.Minute)}, {ID: "a", StoredAt: time.Now().Truncate(time.Millisecond)}}
		alerts := slices.Clone(o.alerts)
		o.mu.Unlock()
		n.Stored(alerts)
		wait(time.Minute)
		stop()
		if diff := cmp.Diff([]string{"a"}, r.got); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}

// TestTwice checks that two receivers with one name are refused: what one of them has
// would count as delivered to the other.
func TestTwice(t *testing.T) {
	_, err := notify.New(notify.Config{Outbox: &outbox{}, Receivers: []notify.Receiver{&receiver{}, &receiver{}}})
	if err == nil || !strings.Contains(err.Error(), `receiver "r" is there twice`) {
		t.Errorf("New = %v", err)
	}
}

// TestTakeover checks that a program's alerts are left to it while it may be
// alive.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{delivered: map[string]bool{}}
		r := &receiver{answer: func(string) error { return nil }}
		_, stop := start(t, o, r)
		o.store(nil, "theirs")
		wait(time.Minute)
		if len(r.sent()) != 0 {
			t.Error("sent at once what another program stored")
		}
		wait(2 * time.Minute)
		stop()
		if diff := cmp.Diff([]string{"theirs"}, r.got); diff != "" {
			t.Errorf("sent after all (-want +got):\n%s", diff)
		}
	})
}

// example is an alert with hostile texts.
var example = alert.Alert{
	ID: strings.Repeat("0a", 16), Rule: "pipe-pane-outside", Severity: alert.Critical, Title: "A pane is piped <out>", Reason: "Because & so.",
	Tenant: "acme", Host: "h1", User: "ann", SessionID: "019e8b1c-0000-7aaa-8bbb-0123456789ab", RecordID: "019e8b1c-0000-7aaa-8bbb-0123456789ac",
	CallNo: 7, Operation: "pipe_pane", Path: "operations[0]", TS: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	Details: `{"destination":"*bold* <http://x|y> @channel"}`,
}

// A far is a receiver at the other end of HTTP.
type far struct {
	*httptest.Server
	got    []string // bodies
	paths  []string
	status int
}

func newFar(t *testing.T) *far {
	f := &far{status: http.StatusOK}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Idempotency-Key") != example.ID || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v %v", r.Header, err)
		}
		f.got, f.paths = append(f.got, string(text)), append(f.paths, r.URL.Path)
		w.Header().Set("Location", "/elsewhere") // of a redirection
		w.WriteHeader(f.status)
	}))
	t.Cleanup(f.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return f
}

var update = flag.Bool("update", false, "rewrite the golden file")

// TestFormats compares what each kind of receiver gets.
func TestFormats(t *testing.T) {
	arch, err := txtar.ParseFile("testdata/formats.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		name, prefix, path string
		new                func(string) (notify.Receiver, error)
	}{
		{"webhook", "", "/hook/T0KEN", notify.Webhook},
		{"slack", "slack+", "/hook/T0KEN", notify.Webhook},
		{"alertmanager", "", "/hook/T0KEN/api/v2/alerts", notify.Alertmanager},
	} {
		f := newFar(t)
		r, err := tt.new(tt.prefix + f.URL + "/hook/T0KEN")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Name(), tt.name+" ") || strings.Contains(r.Name(), "T0KEN") {
			t.Errorf("the name of %s is %q", tt.name, r.Name())
		}
		if err := r.Send(t.Context(), example); err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(f.got[0]), &v); err != nil {
			t.Fatal(err)
		}
		pretty, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			arch.Files[i].Data = append(pretty, '\n')
			continue
		}
		if diff := cmp.Diff(string(arch.Files[i].Data), string(pretty)+"\n"); arch.Files[i].Name != tt.name || diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if f.paths[0] != tt.path {
			t.Errorf("%s is asked at %q, want %q", tt.name, f.paths[0], tt.path)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/formats.txtar", txtar.Format(arch), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReceiverFails has receivers that fail in both ways: without the alert, and
// with it.
func TestReceiverFails(t *testing.T) {
	for _, tt := range []struct {
		status  int
		refused bool
	}{{500, false}, {503, false}, {429, false}, {401, false}, {404, false}, {307, false}, {400, true}, {413, true}, {422, true}} {
		f := newFar(t)
		f.status = tt.status
		r, err := notify.Webhook(f.URL + "/T0KEN")
		if err != nil {
			t.Fatal(err)
		}
		err = r.Send(t.Context(), example)
		if err == nil || errors.Is(err, notify.ErrRefused) != tt.refused || len(f.got) != 1 {
			t.Errorf("status %d: %v after %d requests", tt.status, err, len(f.got))
		}
		if tt.status == 307 && !strings.Contains(err.Error(), "set the address that it redirects to") {
			t.Errorf("a redirection: %v, want the remedy", err)
		}
	}
	f := newFar(t)
	r, err := notify.Webhook(f.URL + "/T0KEN?key=T0KEN")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := r.Send(t.Context(), example); err == nil || errors.Is(err, notify.ErrRefused) || strings.Contains(err.Error(), "T0KEN") {
		t.Errorf("a receiver that is away: %v, want an error without its address", err)
	}
	for _, prefix := range []string{"", "slack+"} {
		r, err := notify.Webhook(prefix + "http://" + echo(t) + "/T0KEN?key=T0KEN")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(t.Context(), example); err == nil || errors.Is(err, notify.ErrRefused) || strings.Contains(err.Error(), "T0KEN") {
			t.Errorf("a receiver that echoes: %v, want an error without its address", err)
		}
	}
}

// echo returns the address of a server that answers a connection with what it got.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 64<<10)
			n, _ := conn.Read(b)
			_, _ = conn.Write(b[:n])
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "T0KEN", "ftp://T0KEN", "https://", "http://a b/T0KEN", "://T0KEN"} {
		for _, f := range []func(string) (notify.Receiver, error){notify.Webhook, notify.Alertmanager} {
			if _, err := f(address); err == nil || strings.Contains(err.Error(), "T0KEN") {
				t.Errorf("%q: %v, want an error that does not quote it", address, err)
			}
		}
	}
	r, err := notify.Webhook("https://hooks.slack.com/services/T0KEN")
	if err != nil || !strings.HasPrefix(r.Name(), "slack ") {
		t.Errorf("Slack's own address: %v, %v", r, err)
	}
}

// TestLog logs the rule's texts and nothing that the agent chose.
func TestLog(t *testing.T) {
	var text strings.Builder
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "m"}), zapcore.AddSync(&text), zap.DebugLevel))
	if err := notify.Log(log).Send(t.Context(), example); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.Contains(got, example.ID) || strings.Contains(got, "channel") || strings.Contains(got, "pipe_pane") {
		t.Errorf("logged %s", got)
	}
}

// TestClockAhead has Alertmanager get the alert, and its end, of a host whose clock is
// ahead: it takes none that begins later than it ends.
func TestClockAhead(t *testing.T) {
	f := newFar(t)
	r, err := notify.Alertmanager(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	ahead := example
	ahead.StoredAt = ahead.TS.Add(-2 * time.Hour)
	ended := ahead.Closing(ahead.ID, 7)
	ended.ID = ahead.ID // as far checks it
	for i, a := range []alert.Alert{ahead, ended} {
		if err := r.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if want := `"startsAt":"2026-11-21T10:00:00Z"`; !strings.Contains(f.got[i], want) {
			t.Errorf("sent %s, want %s", f.got[i], want)
		}
	}
}

// TestShownTexts has people get an agent's and a producer's texts so that nothing in
// them hides or turns what is around it, in no more than Slack takes.
func TestShownTexts(t *testing.T) {
	a := example
	a.Details, a.Operation = `{"destination":"/tmp/\u202egpj.exe\u200b`+"\u202egpj.exe\u200b"+`"}`, "pipe\u2066_p\u0430ne"
	f := newFar(t)
	for i, kind := range []func(string) (notify.Receiver, error){
		notify.Alertmanager, func(address string) (notify.Receiver, error) { return notify.Webhook("slack+" + address) },
	} {
		r, err := kind(f.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if got := f.got[i]; strings.ContainsAny(got, "\u202e\u200b\u2066\u0430") || !strings.Contains(got, `\\u202egpj.exe\\u200b`) || len(got) > 3000 {
			t.Errorf("sent %s, want the characters as escapes, in 3000 bytes", got)
		}
		// Slack has them in the text; for Alertmanager they are labels.
		a.Host, a.User = "h\n\u202e"+strings.Repeat("x", 4000), strings.Repeat("\u202e", 2000)
	}
}

// TestClosing compares what receivers get when a condition has ended.
func TestClosing(t *testing.T) {
	ended := example.Closing(strings.Repeat("0b", 16), 7)
	ended.ID, ended.StoredAt = example.ID, example.TS.Add(time.Hour) // as far checks it
	f := newFar(t)
	for _, kind := range []func(string) (notify.Receiver, error){notify.Webhook, notify.Alertmanager} {
		r, err := kind(f.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(t.Context(), ended); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][]string{
		{`"closes":"` + ended.Closes + `"`, `"title":"Closed: `},
		{`"alert_id":"` + ended.Closes + `"`, `"endsAt":"2026-11-21T13:00:00Z"`, `"severity":"critical"`},
	} {
		for _, part := range want {
			if !strings.Contains(f.got[i], part) {
				t.Errorf("sent %s, want %s", f.got[i], part)
			}
		}
	}
}

// A registry keeps what Register asks of the store.
type registry struct {
	outbox
	calls []string
}

func (r *registry) RegisterReceiver(_ context.Context, receiver, place string, current []string) (time.Time, error) {
	r.calls = append(r.calls, fmt.Sprintf("%s at %q of %d", receiver, place, len(current)))
	return time.Now(), nil
}

func (r *registry) InsertDeliveries(_ context.Context, receiver string, ids []string, state string) error {
	r.calls = append(r.calls, fmt.Sprintf("%s %s%q", receiver, state, ids))
	return nil
}

// TestRegister: the start is noted once all receivers are known, of the log first; only
// those with an address have a place.
func TestRegister(t *testing.T) {
	hook, err := notify.Webhook("https://h:1/secret")
	if err != nil {
		t.Fatal(err)
	}
	r := new(registry)
	n, err := notify.New(notify.Config{Outbox: r, Receivers: []notify.Receiver{notify.Log(zap.NewNop()), hook}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := hook.Name()
	want := []string{`log at "" of 2`, name + ` at "webhook h:1 " of 2`, `log started[""]`, name + ` started[""]`}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
