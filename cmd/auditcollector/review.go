package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/query"
	"auditproxy/collector/review"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const reviewLong = `Serves the page on which reviewers read what agents did, until SIGINT or
SIGTERM, and prints a link that opens it: once, within ten minutes. "review link"
prints another. The records are those of clickhouse.addr or else of the local
engine of a collector that is running.

"auditcollector run" serves the same page, so this is for a page of its own: on
another machine, or for one tenant. The rights of review.user decide whose
records it shows; review.tenant has the page refuse to start if they reach
further than that tenant.`

func newReviewCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review",
		Short: "serve the reviewers' page",
		Long:  reviewLong,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			ctx, cancel := cli.Interruptible(cmd.Context())
			defer cancel()
			p, err := newReviewPage(cfg, cfg.logger(a))
			if err != nil {
				return err
			}
			if p == nil {
				return errors.New("review.listen is off: there is no page to serve")
			}
			defer p.close()
			return p.serve(ctx, a)
		},
	}
	cmd.AddCommand(newReviewLinkCmd(a))
	return cmd
}

func newReviewLinkCmd(a *app) *cobra.Command {
	var who string
	cmd := &cobra.Command{
		Use:   "link",
		Short: "print a link that opens the running page, once",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			if who == "" {
				who = a.username()
			}
			if err := checkName(who); err != nil {
				return fmt.Errorf("--as %w", err)
			}
			ctx, cancel := cli.Interruptible(cmd.Context())
			defer cancel()
			link, err := askLink(ctx, cfg.linkSocket(), who)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, link)
			return query.IgnoreClosed(err)
		},
	}
	cmd.Flags().StringVar(&who, "as", "", "`name` of who will use the link, by default yours")
	return cmd
}

// username returns the user of this program, for the record of a reviewer's
// actions.
func (a *app) username() string {
	if name := a.getenv("SUDO_USER"); name != "" {
		return name
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf("uid %d", os.Getuid())
	}
	return u.Username
}

const maxName = 256 // bytes

func checkName(who string) error {
	if who == "" || len(who) > maxName || strings.ContainsFunc(who, unicode.IsControl) {
		return fmt.Errorf("is %q, want a name of 1 to %d bytes", who, maxName)
	}
	return nil
}

// A reviewPage is the review page and how it reads records.
type reviewPage struct {
	cfg    config
	log    *zap.Logger
	tls    *tls.Config            // nil: none
	pair   func() tls.Certificate // of tls, at the time of a connection
	reader *store.Reader
	store  *store.Store // nil until open
	pages  *review.Server

	evidence *evidenceLog // nil: none
}

// newReviewPage does not connect. It returns nil if the page is disabled.
func newReviewPage(cfg config, log *zap.Logger) (*reviewPage, error) {
	if cfg.review.off() {
		return nil, nil
	}
	p := &reviewPage{cfg: cfg, log: log}
	if err := p.open(); err != nil {
		p.close()
		return nil, cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("opening the review page: %w", err)}
	}
	return p, nil
}

func (p *reviewPage) open() (err error) {
	r := p.cfg.review
	if r.certFile != "" {
		p.pair, err = cli.Renew(func() (tls.Certificate, error) { return tls.LoadX509KeyPair(r.certFile, r.keyFile) }, p.cfg.notRead, r.certFile, r.keyFile)
		if err != nil {
			return fmt.Errorf("reading review.tls.cert_file and key_file: %w", err)
		}
		p.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair := p.pair()
			return &pair, nil
		}}
	}
	// Actions on an alert are written by the collector's user: a reader's user
	// must not write.
	reader, err := p.cfg.reviewer()
	if err != nil {
		return err
	}
	if p.reader, err = store.OpenReader(reader); err != nil {
		return err
	}
	if p.store, err = p.cfg.store(); err != nil {
		return err
	}
	p.pages, err = review.New(review.Config{Reader: p.reader, Store: p.store, Tenant: r.tenant, Who: review.Who, Approvals: r.approvals, Log: p.log})
	return err
}

// reviewer returns how the page reads the configured ClickHouse.
func (c config) reviewer() (clickhouse.Config, error) {
	cc, err := c.clickhouse(chdb.Reader)
	if err != nil || c.review.user == "" {
		return cc, err
	}
	password, err := cli.RenewPassword(c.values, "review.password", c.notRead)
	cc.User, cc.CurrentPassword = c.review.user, password
	return cc, err
}

func (p *reviewPage) close() {
	if p == nil {
		return
	}
	if p.reader != nil {
		p.reader.Close()
	}
	if p.store != nil {
		p.store.Close()
	}
}

// serve opens the page, prints a link to it and serves it until ctx ends.
func (p *reviewPage) serve(ctx context.Context, a *app) error {
	sees, err := p.reader.Tenant(ctx)
	if err != nil {
		return p.cfg.explain(err)
	}
	if err := checkTenant(p.cfg.review.tenant, sees); err != nil {
		return err
	}
	l, err := review.Listen(ctx, p.cfg.review.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("opening the review page: %w: if an auditcollector serves it there already, auditcollector review link prints a link; otherwise choose another review.listen", err)
	}
	if err != nil {
		return fmt.Errorf("opening the review page: %w", err)
	}
	access, err := p.access(l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return review.Serve(ctx, l, p.tls, p.withLog(access.Wrap(p.pages)), p.log) })
	if links, err := listenLinks(ctx, p.cfg); err != nil {
		p.log.Warn("auditcollector review link does not reach this page", zap.Error(err))
	} else {
		g.Go(func() error { return review.Serve(ctx, links, nil, linkHandler(access), p.log) })
	}
	fmt.Fprintf(a.stdout, "The review page, for one browser within ten minutes:\n%s\n", access.Link(a.username()))
	return g.Wait()
}

// withLog returns a handler that serves the evidence's log too, if that is wanted.
// It is for everyone: mirrors and auditors have no code to log in with.
func (p *reviewPage) withLog(pages http.Handler) http.Handler {
	if p.evidence == nil || !p.cfg.evidence.serve {
		return pages
	}
	mux := http.NewServeMux()
	mux.Handle("GET /log/", http.StripPrefix("/log", p.evidence))
	mux.Handle("/", pages)
	return mux
}

// serveBeside serves next to a collector. A failure of the page does not stop
// collecting.
func (p *reviewPage) serveBeside(ctx context.Context, a *app) {
	if p == nil {
		return
	}
	if err := p.serve(ctx, a); err != nil && ctx.Err() == nil {
		p.log.Error("review page not served; records are collected all the same", zap.Error(err))
	}
}

// checkTenant compares the tenant that the page is for with the one whose
// records its user sees; "" means all.
func checkTenant(want, sees string) error {
	switch {
	case want == "" || want == sees:
		return nil
	case sees == "":
		return fmt.Errorf("review.tenant is %q, but ClickHouse lets this user see all tenants: give it the role audit_tenant_reader and SQL_audit_tenant", want)
	default:
		return fmt.Errorf("review.tenant is %q, but this user sees the records of %q", want, sees)
	}
}

// access returns who may see the page that listens at addr.
func (p *reviewPage) access(addr net.Addr) (*review.Access, error) {
	r := p.cfg.review
	where := r.url
	if where == nil {
		host, port, err := net.SplitHostPort(addr.String())
		if err != nil {
			return nil, fmt.Errorf("looking for the page's own address: %w", err)
		}
		if named, _, err := net.SplitHostPort(r.listen); err == nil && named != "" {
			host = named
		}
		where = &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
		if p.tls != nil {
			where = &url.URL{Scheme: "https", Host: net.JoinHostPort(p.certifiedName(host), port)}
		}
	}
	return review.NewAccess(review.AccessConfig{
		URL: where, Loopback: loopback(r.listen),
		TrustedHeader: r.trustedHeader, TrustedProxies: r.trustedProxies,
		Log: p.log,
	})
}

// certifiedName returns a name for which browsers accept the certificate, host
// if possible.
func (p *reviewPage) certifiedName(host string) string {
	cert := p.pair().Leaf
	if cert.VerifyHostname(host) == nil {
		return host
	}
	for _, name := range cert.DNSNames {
		if !strings.HasPrefix(name, "*.") {
			return name
		}
	}
	return host
}

// linkSocket is where a running page issues links. Anyone who can enter
// local.dir may open the page.
func (c config) linkSocket() string { return filepath.Join(c.localDir, "review.sock") }

func listenLinks(ctx context.Context, cfg config) (net.Listener, error) {
	if cfg.localDir == "" {
		return nil, errors.New("there is no local.dir")
	}
	if err := os.MkdirAll(cfg.localDir, 0o700); err != nil {
		return nil, fmt.Errorf("making local.dir: %w", err)
	}
	if info, err := os.Stat(cfg.localDir); err != nil {
		return nil, fmt.Errorf("looking at local.dir: %w", err)
	} else if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may enter local.dir %q: choose another directory, or run chmod 700 %[1]s if no other user needs it", cfg.localDir)
	}
	return review.ListenUnix(ctx, cfg.linkSocket(), 0o600)
}

// linkHandler issues links to the page. It is a socket rather than a file: no
// code is on the disk, and the caller learns immediately if no page is served.
func linkHandler(access *review.Access) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /link", func(w http.ResponseWriter, r *http.Request) {
		who := r.FormValue("who")
		if err := checkName(who); err != nil {
			http.Error(w, "who "+err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, access.Link(who))
	})
	return mux
}

// maxLink is more bytes than any link has.
const maxLink = 4 << 10

// askLink asks the page that serves socket for a link.
func askLink(ctx context.Context, socket, who string) (string, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body := strings.NewReader(url.Values{"who": {who}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://review/link", body)
	if err != nil {
		return "", fmt.Errorf("asking for a link: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := transport.RoundTrip(req)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return "", fmt.Errorf("no review page is running in local.dir %q: start auditcollector run or auditcollector review", filepath.Dir(socket))
	}
	if err != nil {
		return "", fmt.Errorf("asking for a link: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLink))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(escape.Text(strings.TrimSpace(string(text))))
	}
	if err != nil {
		return "", fmt.Errorf("asking for a link: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
