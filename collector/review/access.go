package review

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
)

const (
	codeAge    = 10 * time.Minute
	sessionAge = 12 * time.Hour

	maxCodes    = 32  // unused codes; beyond, the oldest is dropped
	maxSessions = 256 // beyond, the one that ends first is dropped
	maxWrong    = 30  // wrong codes a minute; beyond, none is checked until it is over

	maxBody = 64 << 10 // bytes of a request
	maxName = 256      // bytes of a name that a proxy gives
)

// An AccessConfig selects who may see the pages.
type AccessConfig struct {
	// URL is where a browser finds the pages: scheme, host and port, as in
	// "http://127.0.0.1:8686". Requests for other hosts are refused, because
	// another site could point its name here. Required.
	URL *url.URL

	// Loopback also admits requests for loopback names at any port: a tunnel
	// may use another port.
	Loopback bool

	// TrustedHeader is a header in which a proxy names the sender of a
	// request. It counts only from TrustedProxies and over a Unix socket: any
	// client that can connect from there can claim any name. "": none.
	TrustedHeader  string
	TrustedProxies []netip.Prefix

	Now func() time.Time // nil: time.Now
	Log *zap.Logger      // nil: none
}

// An Access admits users named by a trusted proxy, and browsers that brought
// a one-time code.
//
// A code is in a link of Link. Opening the link spends nothing, because
// programs that show previews of links open them too: it shows a button,
// which posts the code and is given a cookie. Codes and browser sessions are
// in memory only, and end with the process.
type Access struct {
	c      AccessConfig
	origin *http.CrossOriginProtection
	door   *template.Template
	cookie string // its name

	mu       sync.Mutex // guards what follows
	codes    []code     // oldest first
	sessions map[[sha256.Size]byte]visit
	wrong    int       // codes since minute
	minute   time.Time // when counting began
}

// A code can be exchanged for a visit, once.
type code struct {
	sum   [sha256.Size]byte // of the code itself: comparing sums reveals nothing about it
	who   string
	until time.Time
}

// A visit is the state behind a cookie.
type visit struct {
	who   string
	until time.Time
}

//go:embed templates/door.html
var doorFile embed.FS

// NewAccess checks c.
func NewAccess(c AccessConfig) (*Access, error) {
	var problems []error
	if c.URL == nil || c.URL.Scheme != "http" && c.URL.Scheme != "https" || c.URL.Hostname() == "" ||
		*c.URL != (url.URL{Scheme: c.URL.Scheme, Host: c.URL.Host}) {
		problems = append(problems, fmt.Errorf("URL %q: want http or https, a host and nothing after it", c.URL))
	}
	if c.TrustedHeader == "" && len(c.TrustedProxies) > 0 {
		problems = append(problems, errors.New("trusted proxies without the header to trust"))
	}
	door, err := template.ParseFS(doorFile, "templates/door.html")
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, fmt.Errorf("configuring access: %w", err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	a := &Access{c: c, origin: http.NewCrossOriginProtection(), door: door, cookie: cookieName(c.URL), sessions: map[[sha256.Size]byte]visit{}}
	// Behind a proxy that changes Host the two would differ.
	if err := a.origin.AddTrustedOrigin(c.URL.String()); err != nil {
		return nil, fmt.Errorf("configuring access: %w", err)
	}
	return a, nil
}

// cookieName contains the port: cookies are shared by all ports, and two
// pages on one machine would end each other's sessions.
func cookieName(u *url.URL) string {
	name := "auditreview"
	if port := u.Port(); port != "" {
		name += "_" + port
	}
	if u.Scheme == "https" {
		name = "__Host-" + name // the browser enforces Secure and this host
	}
	return name
}

// Link returns a link that admits one browser within ten minutes, under the
// name who.
func (a *Access) Link(who string) string {
	text := rand.Text() // 128 bits
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.c.Now()
	a.codes = slices.DeleteFunc(a.codes, func(c code) bool { return !now.Before(c.until) })
	if len(a.codes) == maxCodes {
		a.codes = a.codes[1:]
	}
	a.codes = append(a.codes, code{sha256.Sum256([]byte(text)), who, now.Add(codeAge)})
	return a.c.URL.String() + "/login?code=" + text
}

// errTooMany means that too many wrong codes came in to check another one.
var errTooMany = errors.New("too many wrong codes")

// exchange spends a code and returns the value of a cookie, "" if the code is
// not valid.
func (a *Access) exchange(text string) (cookie, who string, err error) {
	sum := sha256.Sum256([]byte(text))
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.c.Now()
	if now.Sub(a.minute) >= time.Minute {
		a.minute, a.wrong = now, 0
	}
	if a.wrong >= maxWrong {
		return "", "", errTooMany
	}
	found := -1
	for i, c := range a.codes { // all of them, whichever it is
		if subtle.ConstantTimeCompare(c.sum[:], sum[:]) == 1 && now.Before(c.until) {
			found = i
		}
	}
	if found < 0 {
		a.wrong++
		return "", "", nil
	}
	who = a.codes[found].who
	a.codes = slices.Delete(a.codes, found, found+1)
	cookie = rand.Text()
	a.forget(now)
	a.sessions[sha256.Sum256([]byte(cookie))] = visit{who, now.Add(sessionAge)}
	return cookie, who, nil
}

// forget removes ended visits, and one more if the maximum is reached.
func (a *Access) forget(now time.Time) {
	var first [sha256.Size]byte
	for sum, v := range a.sessions {
		if !now.Before(v.until) {
			delete(a.sessions, sum)
		} else if f, ok := a.sessions[first]; !ok || v.until.Before(f.until) {
			first = sum
		}
	}
	if len(a.sessions) >= maxSessions {
		delete(a.sessions, first)
	}
}

// visitOf returns the visit of a request's cookie.
func (a *Access) visitOf(r *http.Request) (sum [sha256.Size]byte, v visit, ok bool) {
	c, err := r.Cookie(a.cookie)
	if err != nil {
		return sum, v, false
	}
	// The time to look up a sum reveals nothing about the cookie.
	sum = sha256.Sum256([]byte(c.Value))
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok = a.sessions[sum]
	return sum, v, ok && a.c.Now().Before(v.until)
}

// named returns the sender of r that a trusted proxy names, "" without one.
func (a *Access) named(r *http.Request) string {
	if a.c.TrustedHeader == "" || !a.fromProxy(r) {
		return ""
	}
	// With two headers, one may be the sender's own.
	values := r.Header.Values(a.c.TrustedHeader)
	if len(values) != 1 || len(values[0]) > maxName || !utf8.ValidString(values[0]) || strings.ContainsFunc(values[0], unicode.IsControl) {
		return ""
	}
	return values[0]
}

func (a *Access) fromProxy(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		return true // its permissions say who may connect
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(a.c.TrustedProxies, func(p netip.Prefix) bool {
		return p.Contains(remote.Addr().Unmap().WithZone(""))
	})
}

type whoKey struct{}

// Who returns the name under which the sender of a request was admitted.
func Who(r *http.Request) string {
	who, _ := r.Context().Value(whoKey{}).(string)
	return who
}

// Wrap returns a handler that serves pages to those who may see them. Without
// access only /healthz is served, and /login to get it.
func (a *Access) Wrap(pages http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", a.ask)
	mux.HandleFunc("POST /login", a.login)
	mux.HandleFunc("GET /login/{name}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, "static/"+r.PathValue("name"))
	})
	mux.HandleFunc("POST /logout", a.logout)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.guard(w, r, pages) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			fmt.Fprintln(w, "ok")
			return
		}
		if !a.ours(r.Host) {
			a.refuse(w, r, http.StatusForbidden, door{Title: "Another name", Elsewhere: a.c.URL.String()})
			return
		}
		if err := a.origin.Check(r); err != nil {
			a.refuse(w, r, http.StatusForbidden, door{Title: "From another site", Text: "Another site sent this form, so nothing was done. Forms count only when they are sent from these pages."})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

// ours reports whether a browser may address this server as host. The port
// does not matter: a name under foreign control does not match at any port.
func (a *Access) ours(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	if strings.EqualFold(name, a.c.URL.Hostname()) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return a.c.Loopback && (strings.EqualFold(name, "localhost") || err == nil && ip.IsLoopback())
}

func (a *Access) guard(w http.ResponseWriter, r *http.Request, pages http.Handler) {
	who := a.named(r)
	if who == "" {
		_, v, ok := a.visitOf(r)
		if !ok {
			a.refuse(w, r, http.StatusForbidden, door{Title: "No access", Again: r.Header.Get("Sec-Fetch-Site") == "cross-site"})
			return
		}
		who = v.who
	}
	pages.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, who)))
}

// ask shows the button that spends a code.
func (a *Access) ask(w http.ResponseWriter, r *http.Request) {
	a.show(w, http.StatusOK, door{Title: "Open the review page", Code: r.URL.Query().Get("code"), Button: true})
}

// login spends a code. The browser is sent on, so that going back or loading
// again does not send the code again.
func (a *Access) login(w http.ResponseWriter, r *http.Request) {
	cookie, who, err := a.exchange(r.PostFormValue("code"))
	switch {
	case err != nil:
		w.Header().Set("Retry-After", "60")
		a.refuse(w, r, http.StatusTooManyRequests, door{Title: "Too many wrong links", Text: "Somebody tried too many links that do not exist. Wait a minute, then try yours again."})
		return
	case cookie == "":
		a.refuse(w, r, http.StatusForbidden, door{Title: "This link is no longer valid", Text: "A link opens the page once, within ten minutes."})
		return
	}
	a.c.Log.Info("reviewer let in", zap.String("who", who), zap.String("from", r.RemoteAddr))
	a.setCookie(w, cookie, int(sessionAge.Seconds()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends a visit.
func (a *Access) logout(w http.ResponseWriter, r *http.Request) {
	if who := a.named(r); who != "" {
		a.show(w, http.StatusOK, door{Title: "Still signed in", Text: "The proxy in front of this page has signed you in as " + who + ". Sign out there."})
		return
	}
	if sum, _, ok := a.visitOf(r); ok {
		a.mu.Lock()
		delete(a.sessions, sum)
		a.mu.Unlock()
	}
	a.setCookie(w, "", -1)
	a.show(w, http.StatusOK, door{Title: "Signed out", Text: "This browser has no access any more."})
}

// setCookie sets the cookie for a time in seconds; a negative one removes it.
func (a *Access) setCookie(w http.ResponseWriter, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: a.c.URL.Scheme == "https",
	})
}

// A door is a page for senders without access.
type door struct {
	Title, Text string
	Elsewhere   string // URL of the pages
	Again       bool   // the browser may have held back its cookie
	Button      bool   // with Code
	Code        string
}

func (a *Access) refuse(w http.ResponseWriter, r *http.Request, status int, d door) {
	a.c.Log.Info("request refused", zap.String("why", d.Title), zap.String("from", r.RemoteAddr))
	a.show(w, status, d)
}

func (a *Access) show(w http.ResponseWriter, status int, d door) {
	var b bytes.Buffer
	if err := a.door.Execute(&b, d); err != nil {
		a.c.Log.Error("page not made", zap.String("page", "door"), zap.Error(err))
		http.Error(w, "This page could not be made; the log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the client has gone
}
