package formats

import (
	"bytes"

	"auditproxy/redact/lex"
)

// webhooks are addresses whose path is the credential.
var webhooks = [...]string{"hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "api.telegram.org/bot", "conda.anaconda.org/t/"}

// Webhook returns the credential in the address of a webhook, which t has at i
// without its scheme. A method or a channel behind it, up to most bytes on, is no
// part of it.
func Webhook(t []byte, i, most int) lex.Span {
	for _, host := range &webhooks {
		if bytes.HasPrefix(t[i:], []byte(host)) {
			path := i + len(host)
			to := lex.CredentialEnd(t[:min(len(t), path+most)], path)
			if n := bytes.IndexByte(t[path:to], '/'); n > 0 && (host[len(host)-1] != '/' || host[len(host)-2] == 't') {
				return lex.Span{From: path, To: path + n}
			}
			return lex.Span{From: path, To: lex.CredentialEnd(t, to)}
		}
	}
	return lex.Span{}
}
