package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"auditproxy/deploy/dev"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// A manifest holds the tested members of a Kubernetes object.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	Automount  *bool `yaml:"automountServiceAccountToken"` // of a service account
	Spec       struct {
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
		Selector yaml.Node     // of a service its labels, of others with matchLabels
		Ports    []servicePort // of a service
		Claims   []struct {    // of a stateful set
			Metadata struct{ Name string }
		} `yaml:"volumeClaimTemplates"`
		PodSelector labelSelector `yaml:"podSelector"` // of a network policy
		PolicyTypes []string      `yaml:"policyTypes"`
		Ingress     []struct{ Ports []policyPort }
		Egress      []struct{ Ports []policyPort }
	}

	any map[string]any // all of it
}

type labelSelector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type servicePort struct {
	Name       string
	TargetPort string `yaml:"targetPort"`
}

type policyPort struct {
	Protocol string
	Port     int
}

type pod struct {
	ServiceAccountName string         `yaml:"serviceAccountName"`
	Automount          *bool          `yaml:"automountServiceAccountToken"`
	ServiceLinks       *bool          `yaml:"enableServiceLinks"`
	SecurityContext    map[string]any `yaml:"securityContext"`
	InitContainers     []container    `yaml:"initContainers"`
	Containers         []container
	Volumes            []struct {
		Name      string
		ConfigMap *struct{ Name string } `yaml:"configMap"`
		Secret    *struct {
			SecretName string `yaml:"secretName"`
		}
	}
}

type container struct {
	Name, Image   string
	Args, Command []string
	Env           []struct{ Name, Value string }
	Ports         []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Liveness        probe          `yaml:"livenessProbe"`
	Readiness       probe          `yaml:"readinessProbe"`
	SecurityContext map[string]any `yaml:"securityContext"`
	Resources       struct{ Requests, Limits map[string]string }
	VolumeMounts    []mount `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet   struct{ Path, Port string } `yaml:"httpGet"`
	TCPSocket struct{ Port string }       `yaml:"tcpSocket"`
}

type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
	SubPath   string `yaml:"subPath"`
}

// A cluster is the objects of a file.
type cluster []manifest

func readManifests(t *testing.T, name string) (list cluster) {
	t.Helper()
	docs := yaml.NewDecoder(strings.NewReader(readFile(t, name)))
	for {
		var node yaml.Node
		if err := docs.Decode(&node); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		var m manifest
		if err := errors.Join(node.Decode(&m), node.Decode(&m.any)); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
}

// of returns the objects of a kind.
func (c cluster) of(kind string) cluster {
	return slices.DeleteFunc(slices.Clone(c), func(m manifest) bool { return m.Kind != kind })
}

// named returns the object of a kind with a name.
func (c cluster) named(t *testing.T, kind, name string) manifest {
	t.Helper()
	for _, m := range c.of(kind) {
		if m.Metadata.Name == name {
			return m
		}
	}
	t.Errorf("there is no %s %q", kind, name)
	return manifest{}
}

// An api has the schemas of the Kubernetes API, by apiVersion and kind.
type api map[string]*jsonschema.Schema

// readAPI reads the schemas that Kubernetes publishes. They allow unknown members,
// which the API server reports or drops; here these are mistakes.
func readAPI(t *testing.T) api {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dev.Fetched(t, "kubernetes-*"), "*_openapi.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %q, %v", files, err)
	}
	schemas := api{}
	for _, file := range files {
		text := readFile(t, file)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		parts := doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
		for _, part := range parts {
			s := part.(map[string]any)
			if s["properties"] != nil && s["additionalProperties"] == nil {
				s["additionalProperties"] = false
			}
		}
		url := "file:///" + filepath.Base(file)
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(url, map[string]any{"components": map[string]any{"schemas": parts}}); err != nil {
			t.Fatal(err)
		}
		for name, part := range parts {
			kinds, _ := part.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
			if len(kinds) != 1 {
				continue // of several groups, such as DeleteOptions
			}
			k := kinds[0].(map[string]any)
			version := strings.TrimPrefix(fmt.Sprint(k["group"], "/", k["version"]), "/")
			if schemas[version+" "+fmt.Sprint(k["kind"])], err = compiler.Compile(url + "#/components/schemas/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return schemas
}

// check returns what is wrong with an object.
func (a api) check(object map[string]any) error {
	kind := fmt.Sprint(object["apiVersion"], " ", object["kind"])
	schema := a[kind]
	if schema == nil {
		return fmt.Errorf("no schema of %s", kind)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// free are the members whose own members may have any name.
var free = []string{"labels", "matchLabels", "annotations", "data", "requests", "limits"}

// misspell calls try with v changed in one place at a time: in each object, one
// member has another name.
func misspell(v any, path string, try func(path string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value := v[name]
			if !slices.Contains(free, filepath.Base(path)) && name != "apiVersion" && name != "kind" {
				delete(v, name)
				v[name+"z"] = value
				try(path + "/" + name)
				delete(v, name+"z")
				v[name] = value
			}
			misspell(value, path+"/"+name, try)
		}
	case []any:
		for i, value := range v {
			misspell(value, fmt.Sprint(path, "/", i), try)
		}
	}
}

// TestManifests compares deploy/kubernetes with the schemas of the API. A member
// that it does not have is a mistake, whichever is misspelled.
func TestManifests(t *testing.T) {
	schemas := readAPI(t)
	for _, file := range manifestFiles(t) {
		for _, m := range readManifests(t, file) {
			t.Run(filepath.Base(file)+" "+m.Kind+" "+m.Metadata.Name, func(t *testing.T) {
				if err := schemas.check(m.any); err != nil {
					t.Fatal(err)
				}
				misspell(m.any, "", func(path string) {
					ofPods := m.Kind == "Service" && strings.HasPrefix(path, "/spec/selector/")
					if schemas.check(m.any) == nil && !ofPods {
						t.Errorf("%s may be misspelled", path)
					}
				})
			})
		}
	}
}

func manifestFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../deploy/kubernetes/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %q, %v", files, err)
	}
	return files
}

// testPods checks what every pod of deploy/kubernetes must have.
func testPods(t *testing.T, programs programs) {
	for _, file := range manifestFiles(t) {
		objects := readManifests(t, file)
		for _, m := range slices.Concat(objects.of("Deployment"), objects.of("StatefulSet")) {
			t.Run(m.Metadata.Name, func(t *testing.T) {
				p := m.Spec.Template.Spec
				seccomp, _ := p.SecurityContext["seccompProfile"].(map[string]any)
				if p.SecurityContext["runAsNonRoot"] != true || seccomp["type"] != "RuntimeDefault" {
					t.Errorf("security %v", p.SecurityContext)
				}
				if p.Automount == nil || *p.Automount || p.ServiceLinks == nil || *p.ServiceLinks {
					t.Error("it has a token of the cluster, or variables of its services")
				}
				if name := p.ServiceAccountName; name != "" {
					if account := objects.named(t, "ServiceAccount", name); account.Automount == nil || *account.Automount {
						t.Errorf("service account %q gives out a token", name)
					}
				}
				for _, c := range slices.Concat(p.InitContainers, p.Containers) {
					checkContainer(t, programs, objects, p, c)
				}
			})
		}
	}
}

func checkContainer(t *testing.T, programs programs, objects cluster, p pod, c container) {
	t.Helper()
	want := map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}}}
	if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
		t.Errorf("container %q: security (-want +got):\n%s", c.Name, diff)
	}
	if !pinned.MatchString(c.Image) || c.Resources.Limits["memory"] == "" || c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" {
		t.Errorf("container %q: image %q, resources %v", c.Name, c.Image, c.Resources)
	}
	env := map[string]string{}
	for _, v := range c.Env {
		env[v.Name] = v.Value
		if v.Value == "" || strings.HasSuffix(v.Name, "PASSWORD") {
			t.Errorf("container %q: %s is not a value, or a secret", c.Name, v.Name)
		}
	}
	programs.know(t, "container "+c.Name, env)
	for _, m := range c.VolumeMounts {
		if !strings.Contains(m.MountPath, "/etc/audit") {
			continue
		}
		config := objects.named(t, "ConfigMap", p.source(m.Name)).Data[m.SubPath]
		program := filepath.Base(filepath.Dir(m.MountPath))
		programs.knowFile(t, program, config)
		for _, path := range regexp.MustCompile(`_file: (/[\w./]+)`).FindAllStringSubmatch(config, -1) {
			if !slices.ContainsFunc(c.VolumeMounts, func(m mount) bool {
				return m.MountPath == filepath.Dir(path[1]) && strings.HasPrefix(p.source(m.Name), program)
			}) {
				t.Errorf("container %q: nothing is mounted for %s", c.Name, path[1])
			}
		}
	}
}

// source returns the name of the object behind a volume, "" if it is none.
func (p pod) source(volume string) string {
	for _, v := range p.Volumes {
		switch {
		case v.Name != volume:
		case v.ConfigMap != nil:
			return v.ConfigMap.Name
		case v.Secret != nil:
			return v.Secret.SecretName
		}
	}
	return ""
}

// knowFile checks that a program accepts a file as the administrator's.
func (p programs) knowFile(t *testing.T, program, text string) {
	t.Helper()
	dir := t.TempDir()
	text = regexp.MustCompile(`/run/secrets/\w+`).ReplaceAllString(text, dir)
	for _, path := range regexp.MustCompile(regexp.QuoteMeta(dir)+`/\w+`).FindAllString(text, -1) {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil || len(config) == 0 {
		t.Fatalf("%v: %q", err, text)
	}
	enforced, _ := config["enforce"].([]any)
	delete(config, "enforce") // it counts only in /etc
	rest, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, rest, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"query", "--config", file, "--clickhouse-addr", "127.0.0.1:1", "SELECT 1"}
	if program == "auditproxy" {
		args = []string{"show", "--config", file, "--spool-dir", dir, "00000000-0000-7000-8000-000000000000"}
	}
	p.run(t, "the ConfigMap", dir, nil, program, args...)
	help, err := exec.Command(filepath.Join(string(p), program), "--help").Output()
	if err != nil || program == "auditproxy" && len(enforced) == 0 {
		t.Fatalf("%v; enforced: %v", err, enforced)
	}
	for _, key := range enforced {
		if flag := "--" + strings.NewReplacer(".", "-", "_", "-").Replace(fmt.Sprint(key)) + " "; !strings.Contains(string(help), flag) {
			t.Errorf("the ConfigMap enforces %q, which is no key", key)
		}
	}
}

// keysOf reads a configuration.
func keysOf(t *testing.T, text string) (config struct {
	Kafka, ClickHouse struct{ Brokers, Addr []string }
	Review, Metrics   struct{ Listen string }
	Local             struct{ Dir string }
}) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// portOf returns the port of an address.
func portOf(t *testing.T, addr string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(addr)
	port, numberErr := strconv.Atoi(text)
	if err := errors.Join(err, numberErr); err != nil {
		t.Fatal(err)
	}
	return port
}

// testCollectorObjects checks that what belongs to each page and collector fits it:
// the ports of its configuration, its probes, services, budget, network policy, and a
// volume for what "run" keeps.
func testCollectorObjects(t *testing.T, programs programs) {
	objects := readManifests(t, "../deploy/kubernetes/collector.yaml")
	at := programs.collector(t)
	for _, m := range slices.Concat(objects.of("Deployment"), objects.of("StatefulSet")) {
		t.Run(m.Metadata.Name, func(t *testing.T) {
			c, labels := m.Spec.Template.Spec.Containers[0], m.Spec.Template.Metadata.Labels
			config := keysOf(t, objects.named(t, "ConfigMap", m.Metadata.Name).Data["config.yaml"])
			named, numbers := map[string]int{}, []int{}
			for _, port := range c.Ports {
				named[port.Name] = port.Port
				numbers = append(numbers, port.Port)
			}
			var listens []int
			for _, addr := range []string{config.Metrics.Listen, config.Review.Listen} {
				if addr != "" && addr != "off" {
					listens = append(listens, portOf(t, addr))
				}
			}
			if diff := cmp.Diff(listens, numbers); diff != "" {
				t.Errorf("ports (-configured +container):\n%s", diff)
			}
			if lasts := slices.ContainsFunc(c.VolumeMounts, func(v mount) bool {
				return strings.HasPrefix(config.Local.Dir, v.MountPath+"/") && slices.ContainsFunc(m.Spec.Claims, func(c struct{ Metadata struct{ Name string } }) bool {
					return c.Metadata.Name == v.Name
				})
			}); c.Args[0] == "run" && !lasts {
				t.Errorf("local.dir %q, with the log of evidence, ends with the pod", config.Local.Dir)
			}
			checkProbe(t, c.Liveness, named, at)
			checkProbe(t, c.Readiness, named, at)
			service := objects.named(t, "Service", m.Metadata.Name)
			var selects map[string]string
			if err := service.Spec.Selector.Decode(&selects); err != nil {
				t.Fatal(err)
			}
			same(t, "the service", labels, selects)
			for _, port := range service.Spec.Ports {
				if named[port.TargetPort] == 0 {
					t.Errorf("the service has port %+v, the container %v", port, named)
				}
			}
			policy := objects.named(t, "NetworkPolicy", m.Metadata.Name)
			same(t, "the network policy", labels, policy.Spec.PodSelector.MatchLabels)
			if !slices.Equal(policy.Spec.PolicyTypes, []string{"Ingress", "Egress"}) || len(policy.Spec.Ingress) != 1 {
				t.Fatalf("the network policy has %+v", policy.Spec)
			}
			var in, out []int
			for _, port := range policy.Spec.Ingress[0].Ports {
				in = append(in, port.Port)
			}
			if diff := cmp.Diff(numbers, in); diff != "" {
				t.Errorf("ports (-container +network policy):\n%s", diff)
			}
			for _, rule := range policy.Spec.Egress {
				for _, port := range rule.Ports {
					out = append(out, port.Port)
				}
			}
			needs := []int{53, 53}
			for _, addr := range slices.Concat(config.Kafka.Brokers, config.ClickHouse.Addr) {
				if port := portOf(t, addr); !slices.Contains(needs, port) {
					needs = append(needs, port)
				}
			}
			if diff := cmp.Diff(needs, out); diff != "" {
				t.Errorf("ports that it may reach (-want +got):\n%s", diff)
			}
		})
	}
	budget := objects.named(t, "PodDisruptionBudget", "auditcollector")
	var selects labelSelector
	if err := budget.Spec.Selector.Decode(&selects); err != nil {
		t.Fatal(err)
	}
	same(t, "the budget", objects.named(t, "StatefulSet", "auditcollector").Spec.Template.Metadata.Labels, selects.MatchLabels)
}

// checkProbe checks that a probe asks a port of its container, and a page that the
// program at an address serves.
func checkProbe(t *testing.T, p probe, ports map[string]int, at string) {
	t.Helper()
	if ports[p.HTTPGet.Port+p.TCPSocket.Port] == 0 {
		t.Errorf("%+v probes no port of %v", p, ports)
	}
	if p.HTTPGet.Path == "" {
		return
	}
	resp, err := http.Get(at + p.HTTPGet.Path)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode == http.StatusNotFound {
		t.Errorf("the program does not serve %s", p.HTTPGet.Path)
	}
}

// testSidecar checks that what belongs to the sidecar fits it: the port of its
// arguments, its probe, and the service of the StatefulSet.
func testSidecar(t *testing.T, programs programs) {
	objects := readManifests(t, "../deploy/kubernetes/sidecar.yaml")
	set := objects.named(t, "StatefulSet", "agent")
	c := set.Spec.Template.Spec.InitContainers[0]
	i := slices.Index(c.Command, "--metrics-listen")
	if i < 0 || len(c.Ports) != 1 || portOf(t, c.Command[i+1]) != c.Ports[0].Port {
		t.Fatalf("%q listens at none of %v", c.Command, c.Ports)
	}
	checkProbe(t, c.Liveness, map[string]int{c.Ports[0].Name: c.Ports[0].Port}, programs.shipper(t))
	service := objects.named(t, "Service", "agent")
	var selects map[string]string
	if err := service.Spec.Selector.Decode(&selects); err != nil {
		t.Fatal(err)
	}
	same(t, "the service", set.Spec.Template.Metadata.Labels, selects)
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].TargetPort != c.Ports[0].Name {
		t.Errorf("the service has the ports %+v", service.Spec.Ports)
	}
}

// testRemount records a call in the agent's volume, and again after the volume was
// mounted for the next pod.
func testRemount(t *testing.T, programs programs) {
	set := readManifests(t, "../deploy/kubernetes/sidecar.yaml").named(t, "StatefulSet", "agent")
	volume := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mountFor(t, set.Spec.Template.Spec, volume)
		cmd := exec.Command(filepath.Join(string(programs), "auditproxy"), "--", "cat")
		cmd.Env = []string{"HOME=/", "PATH=" + os.Getenv("PATH"), "AUDITPROXY_SPOOL_DIR=" + filepath.Join(volume, "spool")}
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}` + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// mountFor changes a volume as the kubelet does when it mounts it for a pod with an
// fsGroup, see SetVolumeOwnership in pkg/volume of Kubernetes.
func mountFor(t *testing.T, p pod, volume string) {
	t.Helper()
	const files, directories = 0o660, 0o770 | fs.ModeSetgid
	root, err := os.Stat(volume)
	if err != nil {
		t.Fatal(err)
	}
	if p.SecurityContext["fsGroup"] == nil || p.SecurityContext["fsGroupChangePolicy"] == "OnRootMismatch" && root.Mode()&directories == directories {
		return
	}
	if err := filepath.WalkDir(volume, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, info.Mode()|directories)
		}
		return os.Chmod(path, info.Mode()|files)
	}); err != nil {
		t.Fatal(err)
	}
}

// same checks which pods something selects.
func same(t *testing.T, what string, labels, selects map[string]string) {
	t.Helper()
	if diff := cmp.Diff(labels, selects); diff != "" || len(labels) == 0 {
		t.Errorf("%s selects (-labels +selector):\n%s", what, diff)
	}
}

// templates returns the templates of a file's pods, as YAML has them.
func templates(t *testing.T, file string) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, m := range readManifests(t, file) {
		spec, _ := m.any["spec"].(map[string]any)
		if template, ok := spec["template"].(map[string]any); ok {
			found[m.Kind+" "+m.Metadata.Name] = template["spec"].(map[string]any)
		}
	}
	return found
}

// members returns a member that is an object, or a list's that are.
func members(v any, name string) (list []map[string]any) {
	object, _ := v.(map[string]any)
	switch v := object[name].(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		for _, item := range v {
			if m, ok := item.(map[string]any); ok {
				list = append(list, m)
			}
		}
	}
	return list
}

// containersOf returns all containers of a pod.
func containersOf(pod map[string]any) []map[string]any {
	return slices.Concat(members(pod, "initContainers"), members(pod, "containers"), members(pod, "ephemeralContainers"))
}

// mounted are the kinds of volumes that the restricted profile allows.
var mounted = []string{"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}

// unrestricted returns how a pod breaks the restricted profile of Kubernetes' Pod
// Security Standards.
func unrestricted(pod map[string]any) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if pod[name] == true {
			problem("%s", name)
		}
	}
	for _, v := range members(pod, "volumes") {
		for kind := range v {
			if kind != "name" && !slices.Contains(mounted, kind) {
				problem("volume %v: %s", v["name"], kind)
			}
		}
	}
	var both map[string]any // the pod's, which holds where a container says nothing
	for _, both = range members(pod, "securityContext") {
		problems = append(problems, looseContext("the pod", both)...)
	}
	for _, c := range containersOf(pod) {
		own := map[string]any{}
		for _, own = range members(c, "securityContext") {
			problems = append(problems, looseContext(c["name"], own)...)
		}
		effective := maps.Clone(own)
		for name, value := range both {
			if _, has := own[name]; !has {
				effective[name] = value
			}
		}
		if effective["runAsNonRoot"] != true || len(members(effective, "seccompProfile")) == 0 {
			problem("%v: runAsNonRoot %v, seccomp %v", c["name"], effective["runAsNonRoot"], effective["seccompProfile"])
		}
		if own["allowPrivilegeEscalation"] != false {
			problem("%v: allowPrivilegeEscalation", c["name"])
		}
		dropped := false
		for _, capabilities := range members(own, "capabilities") {
			drop, _ := capabilities["drop"].([]any)
			dropped = slices.Contains(drop, any("ALL"))
			add, _ := capabilities["add"].([]any)
			if slices.ContainsFunc(add, func(name any) bool { return name != "NET_BIND_SERVICE" }) {
				problem("%v: capabilities %v", c["name"], add)
			}
		}
		if !dropped {
			problem("%v: capabilities are not dropped", c["name"])
		}
		for _, port := range members(c, "ports") {
			if _, has := port["hostPort"]; has {
				problem("%v: hostPort", c["name"])
			}
		}
		for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			for _, probe := range members(c, name) {
				for _, request := range slices.Concat(members(probe, "httpGet"), members(probe, "tcpSocket")) {
					if _, has := request["host"]; has {
						problem("%v: %s of another host", c["name"], name)
					}
				}
			}
		}
	}
	return problems
}

// looseContext returns what no security context may have.
func looseContext(who any, s map[string]any) (problems []string) {
	problem := func(name string) { problems = append(problems, fmt.Sprintf("%v: %s %v", who, name, s[name])) }
	if s["privileged"] == true {
		problem("privileged")
	}
	if s["runAsUser"] == 0 {
		problem("runAsUser")
	}
	if value, has := s["runAsNonRoot"]; has && value != true {
		problem("runAsNonRoot")
	}
	if mount, has := s["procMount"]; has && mount != "Default" {
		problem("procMount")
	}
	for _, name := range []string{"sysctls", "seLinuxOptions", "windowsOptions"} {
		if _, has := s[name]; has {
			problem(name) // some are allowed
		}
	}
	for _, name := range []string{"seccompProfile", "appArmorProfile"} {
		for _, profile := range members(s, name) {
			if profile["type"] != "RuntimeDefault" && profile["type"] != "Localhost" {
				problem(name)
			}
		}
	}
	return problems
}

// TestRestrictedPods checks that the restricted profile admits every pod of
// deploy/kubernetes, and none of these with one thing changed.
func TestRestrictedPods(t *testing.T) {
	context := func(v map[string]any) map[string]any { return members(v, "securityContext")[0] }
	pods := 0
	for _, file := range manifestFiles(t) {
		for name, pod := range templates(t, file) {
			pods++
			if problems := unrestricted(pod); len(problems) > 0 {
				t.Errorf("%s: %q", name, problems)
			}
		}
		for what, loosen := range map[string]func(pod, container map[string]any){
			"hostNetwork": func(pod, _ map[string]any) { pod["hostNetwork"] = true },
			"hostPID":     func(pod, _ map[string]any) { pod["hostPID"] = true },
			"hostPath": func(pod, _ map[string]any) {
				pod["volumes"] = []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": "/"}}}
			},
			"pod's seccomp":    func(pod, _ map[string]any) { context(pod)["seccompProfile"] = map[string]any{"type": "Unconfined"} },
			"no seccomp":       func(pod, _ map[string]any) { delete(context(pod), "seccompProfile") },
			"pod may be root":  func(pod, _ map[string]any) { delete(context(pod), "runAsNonRoot") },
			"pod is root":      func(pod, _ map[string]any) { context(pod)["runAsUser"] = 0 },
			"sysctls":          func(pod, _ map[string]any) { context(pod)["sysctls"] = []any{} },
			"no context":       func(_, c map[string]any) { delete(c, "securityContext") },
			"privileged":       func(_, c map[string]any) { context(c)["privileged"] = true },
			"may be root":      func(_, c map[string]any) { context(c)["runAsNonRoot"] = false },
			"is root":          func(_, c map[string]any) { context(c)["runAsUser"] = 0 },
			"escalation":       func(_, c map[string]any) { delete(context(c), "allowPrivilegeEscalation") },
			"capability":       func(_, c map[string]any) { members(context(c), "capabilities")[0]["add"] = []any{"NET_RAW"} },
			"not all dropped":  func(_, c map[string]any) { members(context(c), "capabilities")[0]["drop"] = []any{"NET_RAW"} },
			"procMount":        func(_, c map[string]any) { context(c)["procMount"] = "Unmasked" },
			"seccomp":          func(_, c map[string]any) { context(c)["seccompProfile"] = map[string]any{"type": "Unconfined"} },
			"hostPort":         func(_, c map[string]any) { c["ports"] = []any{map[string]any{"hostPort": 80}} },
			"a probe's target": func(_, c map[string]any) { c["livenessProbe"] = map[string]any{"httpGet": map[string]any{"host": "h"}} },
		} {
			for name, pod := range templates(t, file) {
				for i := range containersOf(pod) {
					changed := templates(t, file)[name]
					loosen(changed, containersOf(changed)[i])
					if len(unrestricted(changed)) == 0 {
						t.Errorf("%s, container %d: the profile admits %s", name, i, what)
					}
				}
			}
		}
	}
	if pods < 3 {
		t.Errorf("found %d pods", pods)
	}
}
