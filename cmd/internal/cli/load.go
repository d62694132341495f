// Package cli holds the command-line parts that the programs share: exit codes,
// strict configuration, secrets that do not print, a logger and the version.
//
// The files, from the top: program, usage, version, tls, logqueue, logger,
// load, yaml, trust, trust_linux, trust_other, format, flags, environment,
// complete, check, problem, values, key, secret.
package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"auditproxy/internal/wait"
)

// maxFile is the size limit of a configuration file, in bytes.
const maxFile = 1 << 20

// enforceKey lists, in the administrator's file only, the keys that no later
// layer may change.
const enforceKey = "enforce"

// A Config selects what Load reads.
type Config struct {
	Program    string // such as "auditproxy": names the user's directory and, in upper case, the variables. Required.
	Keys       []Key  // all keys. Required.
	SystemFile string // the administrator's file, which may be missing; "" for none
	SystemUID  int    // a further owner allowed for SystemFile, besides root. Tests own theirs; a program leaves it 0.
	Env        []string
	Flags      *pflag.FlagSet // parsed, as AddFlags defined it; nil for none
}

// Load reads, in this order, the administrator's file, the file that --config
// names or else the user's own in $XDG_CONFIG_HOME, the environment and the
// flags. Later sources win, except over enforced keys. It never reads the
// working directory. An empty variable counts as unset.
//
// The values are those in force only without problems.
func Load(c Config) (Values, Problems) {
	l := loader{Config: c, env: newEnvironment(c.Env), enforced: map[string]bool{}, byName: make(map[string]Key, len(c.Keys))}
	l.values = Values{keys: c.Keys, viper: viper.New(), source: make(map[string]Source, len(c.Keys))}
	for _, k := range c.Keys {
		l.byName[k.Name] = k
		l.setDefault(k)
	}
	if c.SystemFile != "" {
		l.readSystemFile()
		l.checkEnforced()
	}
	l.readUserFile()
	l.readEnv()
	l.readFlags()
	l.values.enforced = l.enforced
	return l.values, l.problems
}

type loader struct {
	Config
	env      environment
	byName   map[string]Key
	enforced map[string]bool
	values   Values
	problems Problems
}

func (l *loader) problem(key string, src Source, err error) {
	l.problems = append(l.problems, Problem{Key: key, Source: src, Err: err})
}

func (l *loader) setDefault(k Key) {
	value := k.zero()
	if k.Default != "" {
		var err error
		if value, err = k.parse(k.Default, l.env.home()); err != nil {
			l.problem(k.Name, Source{}, err)
		}
	}
	l.values.viper.Set(k.Name, value)
}

// set puts a value of one layer into force. The layers are applied here rather
// than bound to viper, because viper reads the process's own environment and
// does not report which layer a value came from.
func (l *loader) set(k Key, src Source, value any, err error) {
	enforced := l.enforced[k.Name] && src.Layer != System
	switch {
	case err != nil:
		l.problem(k.Name, src, err)
	case !enforced:
		l.values.viper.Set(k.Name, value)
		l.values.source[k.Name] = src
	case !k.same(value, l.values.viper.Get(k.Name)): // an equal value changes nothing
		l.problem(k.Name, src, fmt.Errorf("is enforced by %s and cannot be changed", l.SystemFile))
	}
}

// same reports whether two values of k are equivalent. Paths are if they lead
// to the same file; the one in force stays as the administrator wrote it.
func (k Key) same(a, b any) bool {
	if pa, ok := a.(string); ok && k.Kind == Path && filepath.IsAbs(pa) {
		pb, _ := b.(string)
		return filepath.IsAbs(pb) && sameFile(pa, pb)
	}
	return reflect.DeepEqual(a, b)
}

// readSystemFile reads the administrator's file, unless another user could have
// written it. A "~/" in it is the home directory that the system has for the
// user, not $HOME, which belongs to the caller.
func (l *loader) readSystemFile() {
	src := Source{System, l.SystemFile}
	switch err := CheckTrusted(l.SystemFile, l.SystemUID); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		l.problem("", src, withoutPath(err))
	default:
		l.readFile(src, false)
	}
}

func (l *loader) readUserFile() {
	if l.Flags != nil && l.Flags.Changed(configFlag) {
		path, _ := l.Flags.GetString(configFlag)
		if path == "" {
			l.problem("", Source{Flag, "--" + configFlag}, errors.New("names no file"))
			return
		}
		l.values.own, _ = filepath.Abs(path)
		l.readFile(Source{File, path}, true)
		return
	}
	if dir := l.env.configHome(); dir != "" {
		l.values.own = filepath.Join(dir, l.Program)
		l.readFile(Source{File, filepath.Join(l.values.own, "config.yaml")}, false)
	}
}

// readFile reads one file with a viper of its own, which keeps its values apart
// from those in force.
func (l *loader) readFile(src Source, required bool) {
	text, err := readWithin(src.Name)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return
	}
	if err != nil {
		l.problem("", src, withoutPath(err))
		return
	}
	file := viper.NewWithOptions(viper.WithDecoderRegistry(strictYAML{}))
	file.SetConfigType("yaml")
	if err := file.ReadConfig(bytes.NewReader(text)); err != nil {
		l.problem("", src, yamlError(err))
		return
	}
	home := l.env.home()
	if src.Layer == System && bytes.Contains(text, []byte("~/")) {
		home = UserHome()
	}
	names := file.AllKeys()
	slices.Sort(names)
	for _, name := range names {
		k, known := l.byName[name]
		switch {
		case known:
			value, err := k.fromYAML(file.Get(name), home)
			l.set(k, src, value, err)
		case name == enforceKey && src.Layer == System:
			l.enforce(src, file.Get(name))
		case name == enforceKey:
			l.problem(name, src, errors.New("only the administrator's file can enforce keys"))
		default:
			l.problem(name, src, unknownKey(name, l.names()))
		}
	}
}

// names returns the names of all keys.
func (l *loader) names() []string { return slices.Sorted(maps.Keys(l.byName)) }

// silent is how long a file may take to be read.
const silent = 10 * time.Second

// readWithin is readLimited for a file whose read may not end: one of a file server that
// does not answer, or a FIFO without a writer.
func readWithin(path string) ([]byte, error) {
	slow := fmt.Errorf("no answer within %v: check that it is a file, and its file system", silent)
	return wait.Limit(silent, slow, func() ([]byte, error) { return readLimited(path) })
}

// readLimited keeps a file that never ends from filling the memory.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("longer than %s", FormatSize(maxFile))
	}
	return text, err
}

// enforce marks the keys that no later layer may change.
func (l *loader) enforce(src Source, value any) {
	names, err := Key{Kind: List}.fromYAML(value, "")
	if err != nil {
		l.problem(enforceKey, src, err)
		return
	}
	for _, name := range names.([]string) {
		if _, known := l.byName[name]; !known {
			l.problem(enforceKey, src, fmt.Errorf("%q is not a key%s", name, orMeant(name, l.names())))
		}
		l.enforced[name] = true
	}
}

// checkEnforced finds enforced keys without a value to enforce.
func (l *loader) checkEnforced() {
	for _, k := range l.Keys {
		if l.enforced[k.Name] && k.Varies && l.values.source[k.Name].Layer == Default {
			l.problem(k.Name, Source{System, l.SystemFile}, errors.New("is enforced without a value, and its default depends on the user"))
		}
	}
}

func (l *loader) readEnv() {
	prefix := strings.ToUpper(l.Program) + "_"
	byVariable := make(map[string]Key, len(l.Keys))
	for _, k := range l.Keys {
		byVariable[k.Variable(l.Program)] = k
	}
	for _, name := range l.env.names {
		text := l.env.values[name]
		if !strings.HasPrefix(name, prefix) || text == "" || fromKubernetes(name[len(prefix):]) {
			continue
		}
		src := Source{Variable, name}
		k, known := byVariable[name]
		if !known {
			l.problem("", src, unknownKey(name, slices.Sorted(maps.Keys(byVariable))))
			continue
		}
		value, err := k.parse(text, l.env.home())
		l.set(k, src, value, err)
	}
}

// fromKubernetes reports whether a variable is one that Kubernetes sets in
// every container next to a Service with this program's name.
func fromKubernetes(name string) bool {
	return name == "PORT" || strings.HasPrefix(name, "PORT_") || name == "SERVICE_HOST" ||
		name == "SERVICE_PORT" || strings.HasPrefix(name, "SERVICE_PORT_")
}

func (l *loader) readFlags() {
	if l.Flags == nil {
		return
	}
	for _, k := range l.Keys {
		f := l.Flags.Lookup(k.Flag())
		if f == nil || !f.Changed {
			continue
		}
		value, err := k.parse(f.Value.String(), l.env.home())
		l.set(k, Source{Flag, "--" + f.Name}, value, err)
	}
}

// withoutPath drops the path from an error: the source names it already.
func withoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
