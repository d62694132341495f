package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/internal/httperror"
	"auditproxy/schemas/escape"

	"go.uber.org/zap"
)

// sendTimeout is the limit on a receiver's answer.
const sendTimeout = 10 * time.Second

// Log returns the receiver that is the program's own log.
func Log(log *zap.Logger) Receiver { return logged{log} }

type logged struct{ log *zap.Logger }

func (logged) Name() string { return "log" }

// Send logs the rule's texts only: those of clients and servers stay out of
// the log.
func (l logged) Send(_ context.Context, a alert.Alert) error {
	fields := []zap.Field{zap.String("alert", a.ID), zap.String("rule", a.Rule), zap.String("severity", string(a.Severity)),
		zap.String("session", a.SessionID), zap.Uint64("call_no", a.CallNo), zap.Time("ts", a.TS)}
	switch {
	case a.Closes != "":
		l.log.Info("alert closed", append(fields, zap.String("closes", a.Closes))...)
	case a.Severity == alert.Info:
		l.log.Info("alert", fields...)
	default:
		l.log.Warn("alert", fields...)
	}
	return nil
}

// The prefixes of an address that select its format.
const slackPrefix = "slack+"

// Webhook returns the receiver at an address, which is a secret. It is Slack's
// format if the address begins with slack+ or is Slack's own, else the JSON of
// Message.
func Webhook(address string) (Receiver, error) {
	plain := strings.TrimPrefix(address, slackPrefix)
	p, err := newPoster("webhook", plain, Message)
	if err != nil {
		return nil, err
	}
	if plain != address || p.url.Hostname() == "hooks.slack.com" {
		p.kind, p.body = "slack", slackBody
	}
	return p, nil
}

// Alertmanager returns the receiver that is an Alertmanager, version 0.16 or
// later. Its address may hold a password.
func Alertmanager(address string) (Receiver, error) {
	p, err := newPoster("alertmanager", address, alertmanagerBody)
	if err != nil {
		return nil, err
	}
	p.url = p.url.JoinPath("api/v2/alerts")
	return p, nil
}

// A poster sends alerts by HTTP.
type poster struct {
	kind   string
	sum    string // of the address, so that names differ between addresses of one host
	url    *url.URL
	body   func(alert.Alert) any
	client *http.Client
}

// newPoster checks an address. Its errors do not quote it.
func newPoster(kind, address string, body func(alert.Alert) any) (*poster, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("want an address that begins with http:// or https://")
	}
	sum := sha256.Sum256([]byte(address))
	return &poster{kind, hex.EncodeToString(sum[:4]), u, body, &http.Client{
		Timeout: sendTimeout,
		// A redirection would be followed without the body.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Name returns the kind, the host and a sum of the address.
func (p *poster) Name() string { return p.kind + " " + p.url.Host + " " + p.sum }

// placeOf returns what the names of all addresses at one host begin with, "" for the name
// of another receiver.
func placeOf(name string) string {
	kind, rest, _ := strings.Cut(name, " ")
	host, _, ok := strings.Cut(rest, " ")
	if !ok || kind != "webhook" && kind != "slack" && kind != "alertmanager" {
		return ""
	}
	return kind + " " + host + " "
}

// Send posts a. The receiver's answer stays out of the error, because it is
// untrusted.
func (p *poster) Send(ctx context.Context, a alert.Alert) error {
	text, err := json.Marshal(p.body(a))
	if err != nil {
		return fmt.Errorf("encoding an alert: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), bytes.NewReader(text))
	if err != nil {
		return errors.New("the address cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", a.ID)
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("sending: %w", httperror.Reason(err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // or the connection is not reused
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case resp.StatusCode == http.StatusBadRequest, resp.StatusCode == http.StatusRequestEntityTooLarge, resp.StatusCode == http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: status %d", ErrRefused, resp.StatusCode)
	}
	if resp.StatusCode/100 == 3 {
		return fmt.Errorf("sending: status %d: it redirects, which is not followed; set the address that it redirects to", resp.StatusCode)
	}
	return fmt.Errorf("sending: status %d", resp.StatusCode)
}

// Message returns the body for a generic webhook, for encoding as JSON: the
// columns of audit.alerts.
func Message(a alert.Alert) any {
	body := map[string]any{
		"version": 1, "alert_id": a.ID, "rule": a.Rule, "severity": a.Severity, "title": a.Title, "reason": a.Reason,
		"tenant": a.Tenant, "host": a.Host, "user": a.User, "session_id": a.SessionID, "record_id": a.RecordID, "call_no": a.CallNo,
		"operation": a.Operation, "path": a.Path, "ts": a.TS.UTC(), "details": json.RawMessage(a.Details),
	}
	if !a.WindowTo.IsZero() {
		body["window_to"] = a.WindowTo.UTC()
	}
	if a.Closes != "" {
		body["closes"] = a.Closes
	}
	return body
}

// slackEscapes are the three special characters in Slack's texts.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// maxSlack is the most bytes of details in a message; Slack accepts 3000
// characters in one section.
const maxSlack = 1500

// maxName is the most bytes of a name that a host or a producer chose.
const maxName = 300

func slackBody(a alert.Alert) any {
	signs := map[alert.Severity]string{alert.Info: ":information_source:", alert.Warning: ":warning:", alert.Critical: ":rotating_light:"}
	details := cut(shownJSON(a.Details), maxSlack)
	where := fmt.Sprintf("%s · host %s · user %s · session %s · call %d", a.TS.UTC().Format(time.RFC3339),
		cut(escape.Text(a.Host), maxName), cut(escape.Text(a.User), maxName), cut(escape.Text(a.SessionID), maxName), a.CallNo)
	// Details are plain text: an agent's text must not look like the alert's
	// own.
	section := func(kind, text string) any {
		return map[string]any{"type": "section", "text": map[string]any{"type": kind, "text": text}}
	}
	return map[string]any{
		"text": slackEscapes.Replace(a.Title),
		"blocks": []any{
			section("mrkdwn", signs[a.Severity]+" *"+slackEscapes.Replace(a.Title)+"*\n"+slackEscapes.Replace(a.Reason)),
			section("plain_text", where+"\n"+details+"\n"+a.Rule+" "+a.ID),
		},
	}
}

func cut(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// shownJSON returns JSON in which nothing is invisible or changes the direction of
// the text around it: people read it as it is.
func shownJSON(text string) string { return string(escape.AppendJSON(nil, []byte(text))) }

// alertmanagerBody is a list of one alert, as api/v2/openapi.yaml of
// Alertmanager has it. The id is a label, so that no two alerts become one.
func alertmanagerBody(a alert.Alert) any {
	labels := map[string]string{"alertname": a.Rule, "severity": string(a.Severity), "alert_id": a.ID, "service": "auditcollector"}
	for name, value := range map[string]string{"tenant": a.Tenant, "host": a.Host, "session_id": a.SessionID} {
		if value != "" {
			labels[name] = value
		}
	}
	// Alertmanager refuses an alert that begins after it ends, without an end in five
	// minutes: it would have to wait until a host whose clock is ahead is right.
	began := a.TS
	if !a.StoredAt.IsZero() && a.StoredAt.Before(began) {
		began = a.StoredAt
	}
	body := map[string]any{
		"labels":      labels,
		"annotations": map[string]string{"summary": a.Title, "description": a.Reason, "details": shownJSON(a.Details), "operation": escape.Name(a.Operation)},
		"startsAt":    began.UTC(),
	}
	if a.Closes != "" { // the alert with these labels has ended
		labels["alert_id"], body["endsAt"] = a.Closes, a.StoredAt.UTC()
	}
	return []any{body}
}
