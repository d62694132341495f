package servertest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/internal/wait"
)

// ZooKeeper starts a keeper of replicated servers and returns its port on
// 127.0.0.1. It ends with the test.
func ZooKeeper(t testing.TB) (port string) {
	t.Helper()
	java := dev.Command(t, "java")
	jars := filepath.Dir(dev.Fetched(t, "zookeeper", ".done"))
	dir := t.TempDir()
	port = Port(t)
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\ntickTime=500\n4lw.commands.whitelist=srvr\n", filepath.Join(dir, "data"), port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.io.tmpdir="+dir, "-cp", filepath.Join(jars, "*"), "org.apache.zookeeper.server.ZooKeeperServerMain", config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it says that it was killed
	})
	for began := time.Now(); ; {
		said, err := zookeeperSays("127.0.0.1:" + port)
		if strings.Contains(said, "Mode: standalone") {
			return port
		}
		if time.Since(began) > readyTimeout || gone(cmd) {
			t.Fatalf("ZooKeeper does not answer: %v\n%s", err, out.String())
		}
		if err := wait.For(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// zookeeperSays returns its words about itself. It listens before it serves.
func zookeeperSays(addr string) (string, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Before it serves, it may answer nothing, ever.
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return "", err
	}
	said, err := io.ReadAll(conn)
	return string(said), err
}

// Replica is the part of a server's configuration that makes it a replica of a
// cluster named prod. ports are those of the native protocol of all servers, by
// shard; number is the server's, from 1.
func Replica(zookeeper string, number int, shard string, ports ...[]string) string {
	servers := ""
	for _, replicas := range ports {
		servers += "<shard><internal_replication>true</internal_replication>"
		for _, port := range replicas {
			servers += "<replica><host>127.0.0.1</host><port>" + port + "</port></replica>"
		}
		servers += "</shard>"
	}
	// Every process of the engine has the same identity, by which a session in
	// ZooKeeper ends another's. So the second has a root of its own, which is /shared
	// to the first, which has to make it.
	root := ""
	if number > 1 {
		root = "<root>/shared</root>"
	}
	if zookeeper != "" {
		zookeeper = "<zookeeper><node><host>127.0.0.1</host><port>" + zookeeper + "</port></node><session_timeout_ms>10000</session_timeout_ms>" + root + "</zookeeper>"
	}
	return zookeeper + fmt.Sprintf("<macros><shard>%s</shard><replica>r%d</replica></macros><remote_servers><prod><secret>any</secret>%s</prod></remote_servers>", shard, number, servers)
}
