package review

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A gate is an Access in front of a page that says who it was opened for.
type gate struct {
	*Access
	http.Handler
	now time.Time // of the access, which no goroutine of its own reads
}

func newGate(t *testing.T, c AccessConfig) *gate {
	t.Helper()
	g := &gate{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	if c.URL == nil {
		c.URL = &url.URL{Scheme: "http", Host: "127.0.0.1:8686"}
	}
	c.Now = func() time.Time { return g.now }
	var err error
	if g.Access, err = NewAccess(c); err != nil {
		t.Fatal(err)
	}
	g.Handler = g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "for %q", Who(r)) }))
	return g
}

// do answers a request as a server at loopback would.
func (g *gate) do(r *http.Request, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r.Host, r.RemoteAddr = "127.0.0.1:8686", "127.0.0.1:50000"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func get(path string) *http.Request { return httptest.NewRequest("GET", path, nil) }

func post(path string, form url.Values) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// codeOf returns the code in a link.
func codeOf(t *testing.T, link string) url.Values {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Path != "/login" || len(u.Query().Get("code")) < 22 {
		t.Fatalf("the link is %q, %v", link, err)
	}
	return u.Query()
}

// enter spends a link and returns what sends its cookie along.
func (g *gate) enter(t *testing.T, link string) func(*http.Request) {
	t.Helper()
	w := g.do(post("/login", codeOf(t, link)))
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" {
		t.Fatalf("posting a good code: %d to %q\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	return sending(w)
}

func sending(w *httptest.ResponseRecorder) func(*http.Request) {
	return func(r *http.Request) {
		for _, c := range w.Result().Cookies() {
			r.AddCookie(c)
		}
	}
}

// TestLink checks that opening a link spends nothing, and that its button admits
// one browser, once.
func TestLink(t *testing.T) {
	g := newGate(t, AccessConfig{})
	link := g.Link("ann")
	for range 3 { // a previewer, a scanner, the reviewer
		w := g.do(get(strings.TrimPrefix(link, "http://127.0.0.1:8686")))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), codeOf(t, link).Get("code")) || len(w.Result().Cookies()) > 0 {
			t.Fatalf("opening the link: %d, cookies %v\n%s", w.Code, w.Result().Cookies(), w.Body)
		}
	}
	first := g.do(post("/login", codeOf(t, link)))
	cookies := first.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("posting the code gave %d cookies, want 1", len(cookies))
	}
	got := *cookies[0]
	if len(got.Value) < 22 {
		t.Errorf("the cookie's value is %q, want 128 bits", got.Value)
	}
	got.Value, got.Raw = "", ""
	want := http.Cookie{Name: "auditreview_8686", Path: "/", MaxAge: 12 * 60 * 60, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cookie (-want +got):\n%s", diff)
	}
	if w := g.do(get("/calls"), sending(first)); w.Code != http.StatusOK || w.Body.String() != `for "ann"` {
		t.Errorf("with the cookie: %d %s", w.Code, w.Body)
	}
	second := g.do(post("/login", codeOf(t, link)))
	if second.Code != http.StatusForbidden || len(second.Result().Cookies()) > 0 || !strings.Contains(second.Body.String(), "auditcollector review link") {
		t.Errorf("the code once more: %d, cookies %v\n%s", second.Code, second.Result().Cookies(), second.Body)
	}
}

// TestCookieUnderTLS checks that the cookie is for TLS and this host only.
func TestCookieUnderTLS(t *testing.T) {
	g := newGate(t, AccessConfig{URL: &url.URL{Scheme: "https", Host: "audit.example.org"}})
	w := g.do(post("/login", codeOf(t, g.Link("ann"))), func(r *http.Request) { r.Host = "audit.example.org" })
	cookies := w.Result().Cookies()
	if len(cookies) != 1 || cookies[0].Name != "__Host-auditreview" || !cookies[0].Secure {
		t.Errorf("%d, cookies %v", w.Code, cookies)
	}
}

// TestCodeOnce checks that a code spent concurrently admits one browser.
func TestCodeOnce(t *testing.T) {
	g := newGate(t, AccessConfig{})
	for range 20 {
		form := codeOf(t, g.Link("ann"))
		var wg sync.WaitGroup
		in := make(chan bool, 8)
		for range cap(in) {
			wg.Go(func() {
				if g.do(post("/login", form)).Code == http.StatusSeeOther {
					in <- true
				}
			})
		}
		wg.Wait()
		g.now = g.now.Add(time.Minute) // the others were wrong codes
		if len(in) != 1 {
			t.Fatalf("%d got in with one code", len(in))
		}
	}
}

func TestTimes(t *testing.T) {
	g := newGate(t, AccessConfig{})
	late := codeOf(t, g.Link("ann"))
	g.now = g.now.Add(10 * time.Minute)
	if w := g.do(post("/login", late)); w.Code != http.StatusForbidden {
		t.Errorf("a code after ten minutes: %d", w.Code)
	}
	cookie := g.enter(t, g.Link("ann"))
	g.now = g.now.Add(12*time.Hour - time.Second)
	if w := g.do(get("/"), cookie); w.Code != http.StatusOK {
		t.Errorf("a cookie before twelve hours: %d", w.Code)
	}
	g.now = g.now.Add(time.Second)
	if w := g.do(get("/"), cookie); w.Code != http.StatusForbidden {
		t.Errorf("a cookie after twelve hours: %d", w.Code)
	}
}

// TestWrongCodes checks that guessing is stopped, and that a right code works again
// later.
func TestWrongCodes(t *testing.T) {
	g := newGate(t, AccessConfig{})
	right := codeOf(t, g.Link("ann"))
	for i := range maxWrong {
		if w := g.do(post("/login", url.Values{"code": {fmt.Sprint("guess", i)}})); w.Code != http.StatusForbidden {
			t.Fatalf("guess %d: %d", i, w.Code)
		}
	}
	w := g.do(post("/login", right))
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "60" {
		t.Errorf("after %d guesses: %d", maxWrong, w.Code)
	}
	g.now = g.now.Add(time.Minute)
	if w := g.do(post("/login", right)); w.Code != http.StatusSeeOther {
		t.Errorf("a minute later: %d", w.Code)
	}
}

// TestBounds checks that codes and visits are bounded.
func TestBounds(t *testing.T) {
	g := newGate(t, AccessConfig{})
	first := codeOf(t, g.Link("ann"))
	for range maxCodes {
		g.Link("ann")
	}
	if w := g.do(post("/login", first)); w.Code != http.StatusForbidden {
		t.Errorf("the oldest of %d codes: %d", maxCodes+1, w.Code)
	}
	oldest := g.enter(t, g.Link("ann"))
	for range maxSessions {
		g.now = g.now.Add(time.Second)
		newest := g.enter(t, g.Link("ann"))
		if w := g.do(get("/"), newest); w.Code != http.StatusOK {
			t.Fatalf("the newest visit: %d", w.Code)
		}
	}
	if w := g.do(get("/"), oldest); w.Code != http.StatusForbidden || len(g.sessions) != maxSessions {
		t.Errorf("the oldest visit: %d; there are %d", w.Code, len(g.sessions))
	}
}

func TestLogout(t *testing.T) {
	g := newGate(t, AccessConfig{})
	cookie, other := g.enter(t, g.Link("ann")), g.enter(t, g.Link("bob"))
	w := g.do(post("/logout", nil), cookie)
	if gone := w.Result().Cookies(); w.Code != http.StatusOK || len(gone) != 1 || gone[0].MaxAge != -1 {
		t.Errorf("signing out: %d, cookies %v", w.Code, gone)
	}
	if w := g.do(get("/"), cookie); w.Code != http.StatusForbidden {
		t.Errorf("the cookie afterwards: %d", w.Code)
	}
	if w := g.do(get("/"), other); w.Code != http.StatusOK {
		t.Errorf("somebody else's: %d", w.Code)
	}
	g.c.TrustedHeader, g.c.TrustedProxies = "X-User", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	w = g.do(post("/logout", nil), other, func(r *http.Request) { r.Header.Set("X-User", "<b>") })
	if !strings.Contains(w.Body.String(), "signed you in as &lt;b&gt;") || len(w.Result().Cookies()) > 0 {
		t.Errorf("signing out of a proxy: %d\n%s", w.Code, w.Body)
	}
}

// TestRoutes requests every page without access, and the paths that need none.
func TestRoutes(t *testing.T) {
	s, err := newServer(Config{}, sources{}) // a page that reads the store panics
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, AccessConfig{})
	g.Handler = g.Wrap(s)
	const id = "01a00000-0000-7000-8000-000000000000"
	for _, tt := range []struct {
		paths string
		want  int
	}{
		{"/ /calls /calls/" + id + " /calls.csv /calls.ndjson /sessions /sessions/" + id, 403},
		{"/destinations /environment /tools /alerts /alerts/x /static/style.css /static/icon.svg", 403},
		{"/nowhere /login/../calls /Healthz /healthz/ /healthz/x //", 403},
		{"/login/nowhere", 404},
		{"/login/..%2ftemplates%2fcall.html /login/%2e%2e", 400},
		{"/healthz /login /login/style.css /login/icon.svg", 200},
	} {
		for path := range strings.FieldsSeq(tt.paths) {
			for _, method := range []string{"GET", "HEAD"} {
				w := g.do(httptest.NewRequest(method, "http://127.0.0.1:8686"+path, nil))
				if moved := w.Code == http.StatusMovedPermanently || w.Code == http.StatusTemporaryRedirect; w.Code != tt.want && !moved {
					t.Errorf("%s %s: %d, want %d", method, path, w.Code, tt.want)
				}
				if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
					t.Errorf("%s %s: Content-Security-Policy %q", method, path, policy)
				}
				if w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s %s: headers %v", method, path, w.Header())
				}
			}
			if w := g.do(post(path, nil)); w.Code < 400 && w.Code != http.StatusTemporaryRedirect && w.Code != http.StatusMovedPermanently {
				t.Errorf("POST %s: %d", path, w.Code)
			}
		}
	}
}

// TestSites checks that a page of another site gets nothing, whether its own name
// points here or it sends the browser here.
func TestSites(t *testing.T) {
	far := &url.URL{Scheme: "https", Host: "audit.example.org"}
	for _, tt := range []struct {
		name     string
		url      *url.URL // nil: that of the loopback
		host     string
		header   [2]string // of a POST
		get, out int       // of GET and POST
	}{
		{"it knows its address", nil, "127.0.0.1:8686", [2]string{}, 200, 200},
		{"it knows a tunnel", nil, "localhost:9999", [2]string{}, 200, 200},
		{"it knows IPv6", nil, "[::1]:8686", [2]string{}, 200, 200},
		{"it refuses a name that leads here", nil, "evil.example:8686", [2]string{}, 403, 403},
		{"it refuses a name that looks like ours", nil, "127.0.0.1.evil.example", [2]string{}, 403, 403},
		{"it refuses another address", nil, "10.0.0.1:8686", [2]string{}, 403, 403},
		{"it refuses no name", nil, "", [2]string{}, 403, 403},
		{"it takes its own forms", nil, "127.0.0.1:8686", [2]string{"Sec-Fetch-Site", "same-origin"}, 200, 200},
		{"it refuses another site's form", nil, "127.0.0.1:8686", [2]string{"Sec-Fetch-Site", "cross-site"}, 200, 403},
		{"it refuses another port's form", nil, "127.0.0.1:8686", [2]string{"Sec-Fetch-Site", "same-site"}, 200, 403},
		{"it reads Origin of old browsers", nil, "127.0.0.1:8686", [2]string{"Origin", "http://evil.example"}, 200, 403},
		{"it reads the port in Origin", nil, "127.0.0.1:8686", [2]string{"Origin", "http://127.0.0.1:9999"}, 200, 403},
		{"it refuses a frame without an origin", nil, "127.0.0.1:8686", [2]string{"Origin", "null"}, 200, 403},
		{"it takes its own Origin", nil, "127.0.0.1:8686", [2]string{"Origin", "http://127.0.0.1:8686"}, 200, 200},
		{"it knows its name", far, "audit.example.org", [2]string{"Origin", "https://audit.example.org"}, 200, 200},
		{"it refuses loopback names elsewhere", far, "localhost", [2]string{}, 403, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t, AccessConfig{URL: tt.url, Loopback: tt.url == nil})
			here := func(r *http.Request) { r.Host = g.c.URL.Host }
			cookie := sending(g.do(post("/login", codeOf(t, g.Link("ann"))), here))
			host := func(r *http.Request) { r.Host = tt.host }
			if w := g.do(get("/"), cookie, host); w.Code != tt.get {
				t.Errorf("GET: %d, want %d", w.Code, tt.get)
			}
			with := func(r *http.Request) {
				if tt.header[0] != "" {
					r.Header.Set(tt.header[0], tt.header[1])
				}
			}
			if w := g.do(post("/alerts/x", nil), cookie, host, with); w.Code != tt.out {
				t.Errorf("POST: %d, want %d", w.Code, tt.out)
			}
			// Nor may another site give its own visit to this browser.
			w := g.do(post("/login", codeOf(t, g.Link("eve"))), host, with)
			if in := w.Code == http.StatusSeeOther; in != (tt.out == 200) {
				t.Errorf("POST of a code: %d", w.Code)
			}
		})
	}
}

func TestTrustedHeader(t *testing.T) {
	header := func(values ...string) http.Header { return http.Header{"X-Forwarded-User": values} }
	for _, tt := range []struct {
		name    string
		from    string
		unix    bool
		header  http.Header
		want    int
		wantWho string
	}{
		{"it believes the proxy", "10.1.2.3:4", false, header("ann"), 200, "ann"},
		{"it believes the proxy in IPv6", "[::ffff:10.1.2.3]:4", false, header("ann"), 200, "ann"},
		{"it believes who may open the socket", "@", true, header("ann"), 200, "ann"},
		{"it believes nobody else", "10.2.2.3:4", false, header("ann"), 403, ""},
		{"it believes no neighbour of the proxy", "127.0.0.1:4", false, header("ann"), 403, ""},
		{"it wants a name", "10.1.2.3:4", false, header(""), 403, ""},
		{"it wants the header", "10.1.2.3:4", false, nil, 403, ""},
		{"it wants one name", "10.1.2.3:4", false, header("eve", "ann"), 403, ""},
		{"it wants no control characters", "10.1.2.3:4", false, header("a\x1bnn"), 403, ""},
		{"it wants a name and no book", "10.1.2.3:4", false, header(strings.Repeat("a", 257)), 403, ""},
		{"it wants UTF-8", "10.1.2.3:4", false, header("\xff"), 403, ""},
		{"it knows one header", "10.1.2.3:4", false, http.Header{"X-Remote-User": {"ann"}}, 403, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t, AccessConfig{TrustedHeader: "X-Forwarded-User", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
			w := g.do(get("/"), func(r *http.Request) {
				r.RemoteAddr = tt.from
				for name, values := range tt.header {
					r.Header[name] = values
				}
				if tt.unix {
					*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Name: "/x", Net: "unix"})))
				}
			})
			if who := fmt.Sprintf("for %q", tt.wantWho); w.Code != tt.want || tt.want == 200 && w.Body.String() != who {
				t.Errorf("%d %.60s, want %d %s", w.Code, w.Body, tt.want, who)
			}
		})
	}
}

func TestAccessConfig(t *testing.T) {
	for _, tt := range []struct {
		name, url string
		proxies   bool
		want      []string
	}{
		{"it wants a scheme that browsers have", "ftp://a", false, []string{`URL "ftp://a"`}},
		{"it wants a host", "http:///", false, []string{"a host"}},
		{"it wants no path", "https://a/b", false, []string{"nothing after it"}},
		{"it names all problems", "https://a?b", true, []string{"nothing after it", "without the header"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := url.Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			c := AccessConfig{URL: u}
			if tt.proxies {
				c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
			}
			_, err = NewAccess(c)
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
}

// TestCrossSiteReload follows a link from elsewhere: because of SameSite=Strict the
// browser sends no cookie, and the page says so.
func TestCrossSiteReload(t *testing.T) {
	g := newGate(t, AccessConfig{})
	for site, want := range map[string]bool{"cross-site": true, "none": false, "": false} {
		w := g.do(get("/calls"), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", site) })
		if got := strings.Contains(w.Body.String(), `<a href="">`); got != want {
			t.Errorf("from %q: a link to load again: %t, want %t", site, got, want)
		}
	}
}
