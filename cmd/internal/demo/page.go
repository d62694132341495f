package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// link asks the running page for a link.
func (d *demo) link(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, d.collector, "review", "link")
	cmd.Env = d.environ()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking for a link: %w: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// showPages opens each page once, as a reviewer with a link.
func (d *demo) showPages(ctx context.Context) error {
	d.out.heading("The review page")
	d.out.text("The collector serves it on this machine. A link opens it for one browser, once:\n")
	d.out.command("auditcollector", "review", "link")
	link, err := d.link(ctx)
	if err != nil {
		return err
	}
	d.out.text("%s\n\n", link)
	at, err := url.Parse(link)
	if err != nil {
		return fmt.Errorf("reading the link: %w", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return fmt.Errorf("making a cookie jar: %w", err)
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	get := func(path string, form url.Values) (string, error) { return d.fetch(ctx, client, at, path, form) }
	if _, err := get("/calls", nil); err == nil {
		return errors.New("the page is open to everybody")
	}
	d.out.mark(true, "403 without the link")
	if _, err := get("/login", at.Query()); err != nil { // the button of the link
		return err
	}
	for _, p := range []struct {
		path string
		next string   // a link in it to open too
		want []string // in it
	}{
		{"/", "", []string{"critical alert"}},
		{"/calls", `/calls/[0-9a-f-]{36}`, []string{"pipe_pane", "call_read_tools_batch"}},
		{"/sessions", `/sessions/[0-9a-f-]{36}`, []string{"demo-agent"}},
		{"/destinations", "", []string{d.pipeFile()}},
		{"/environment", "", []string{"API_TOKEN", "DB_PASSWORD"}},
		{"/tools", "", []string{"send_keys_batch"}},
		{"/alerts", `/alerts/[0-9a-f]{32}`, []string{"pipe-pane-outside"}},
	} {
		page, err := get(p.path, nil)
		if err != nil {
			return err
		}
		for _, want := range p.want {
			if !strings.Contains(page, want) {
				return fmt.Errorf("looking at %s: it does not show %q", p.path, want)
			}
		}
		d.out.mark(true, "200 %-14s shows %s", p.path, strings.Join(p.want, ", "))
		if p.next == "" {
			continue
		}
		next := regexp.MustCompile(p.next).FindString(page)
		if _, err := get(next, nil); err != nil {
			return err
		}
		d.out.mark(true, "200 %s", next)
	}
	return nil
}

// fetch gets a page, or posts a form to it, and counts the pages.
func (d *demo) fetch(ctx context.Context, client *http.Client, at *url.URL, path string, form url.Values) (string, error) {
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	target := url.URL{Scheme: at.Scheme, Host: at.Host, Path: path}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", path, err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", path, err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("looking at %s: %s", path, resp.Status)
	}
	d.pages.count++
	d.pages.secrets += d.count(page)
	return string(page), nil
}

// searchPages reports how often the secret was on them.
func (d *demo) searchPages(context.Context) (hits int, what string, err error) {
	return d.pages.secrets, fmt.Sprintf("pages: %d", d.pages.count), nil
}
