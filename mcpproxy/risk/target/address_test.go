package target

import (
	"testing"
)

func TestPrivateAddresses(t *testing.T) {
	for _, private := range []string{
		"http://localhost", "http://localhost:8080/x", "HTTP://LOCALHOST/", "http://localhost./", "http://a.localhost/", "https://user:pw@127.0.0.1/",
		"http://127.0.0.1", "http://127.0.0.1:80/x?y#z", "http://127.1", "http://127.0.1", "http://127.255.255.254/", "http://0/", "http://0.0.0.0:80", "http://0.1.2.3/",
		"http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/", "http://127.0.0.1./", "http://0x7f.1/",
		"http://10.0.0.1", "http://10.1", "http://010.0.0.1/", "http://172.16.0.1", "http://172.31.255.255", "http://192.168.1.1/admin", "http://3232235777/",
		"http://169.254.169.254/latest/meta-data/", "http://169.254.1.1/", "http://0xa9fea9fe/", "http://2852039166/", "http://100.64.0.1", "http://100.127.255.255", "http://100.100.100.200/",
		"http://192.0.0.192/", "http://198.18.0.1/", "http://255.255.255.255/",
		"http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]:80/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:a9fe:a9fe]/", "http://[::127.0.0.1]/",
		"http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fec0::1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::10.0.0.1]/",
		"http://[2002:7f00:1::]/", "http://[2002:a00:1::1]/", "http://[2001:0:1:2:3:4:80ff:fffe]/", "http://[ff02::1]/", "http://[::ffff:0:127.0.0.1]/",
		"http://metadata.google.internal/computeMetadata/v1/", "http://metadata/", "http://instance-data/", "http://host.docker.internal:2375/", "http://x.internal/", "http://db.default.svc.cluster.local/",
		"http://printer.local/", "http://kubernetes.default.svc/api", "http://localhost6/", "http://ip6-localhost/",
		"ws://127.0.0.1/", "wss://localhost/", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_x", "redis://localhost:6379", "postgres://u:p@10.0.0.1/db", "ldap://127.0.0.1/",
		"http:127.0.0.1", "http:/127.0.0.1/", "http:///127.0.0.1/", `http:\\127.0.0.1\x`, `http://127.0.0.1\@example.com/`, "http://example.com@127.0.0.1/", "http://example.com:80@localhost/x",
		`http://example.com\@127.0.0.1/`, "http://127.0.0.1%00.example.com/", "unix:///var/run/docker.sock", "UNIX:/run/x.sock", "http+unix://%2fvar%2frun%2fdocker.sock/v1", "npipe:////./pipe/docker_engine",
		"http://%31%32%37.0.0.1/", "http://%6c%6f%63alhost/", "http://１２７.０.０.１/", "http://127。0。0。1/", "http://ⓛocalhost/", "http://lo\tcal\nhost/", " http://127.0.0.1/ ",
	} {
		if !IsPrivateURL(private, false) {
			t.Errorf("%q is not private", private)
		}
	}
	for _, bare := range []string{"localhost", "localhost:80", "127.0.0.1", "127.0.0.1:22", "10.0.0.1/x", "//169.254.169.254/x", "::1", "[::1]:80", "fe80::1", "::1:80", "metadata.google.internal", "0x7f000001", "2130706433", "192.168.0.1"} {
		if !IsPrivateURL(bare, true) {
			t.Errorf("%q is not private", bare)
		}
	}
	for _, public := range []string{
		"", "x", "http://", "http:///", "http://example.com", "https://example.com/http://127.0.0.1/", "http://example.com/?u=http://localhost", "http://127.0.0.1.example.com/", "http://localhost.example.com/",
		"http://notlocalhost/", "http://8.8.8.8/", "http://1.1.1.1", "http://172.15.0.1", "http://172.32.0.1", "http://192.169.0.1", "http://11.0.0.1", "http://100.63.0.1", "http://100.128.0.1",
		"http://169.253.0.1/", "http://[2606:4700:4700::1111]/", "http://[2002:808:808::]/", "http://[::ffff:8.8.8.8]/", "http://134744072/", "http://256.0.0.1/", "http://1.2.3.4.5/", "http://99999999999/",
		"mailto:a@localhost", "data:text/plain,127.0.0.1", "note: 127.0.0.1", "12:30", "http://[::1", "http://[x]/", "http://internal/", "http://internal.example.com/", "urn:isbn:127.0.0.1", "tmux://panes/1", "unix: a system", "unix://", `http://example.com\127.0.0.1`, `http://example.com/\@127.0.0.1`,
	} {
		if public == "http://[::1" {
			continue // no URL, but read as one by some
		}
		if IsPrivateURL(public, false) {
			t.Errorf("%q is private", public)
		}
	}
	for _, public := range []string{"example.com", "12", "0", "db", "/api/v1", "left", "%1", "8.8.8.8", "pane", "https://example.com"} {
		if IsPrivateURL(public, true) {
			t.Errorf("%q is private", public)
		}
	}
}
