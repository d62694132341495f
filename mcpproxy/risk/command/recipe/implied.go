package recipe

import (
	"path"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// IsCommand reports whether a text starts with a well-known program and an argument.
func IsCommand(text string) bool {
	name, rest, ok := strings.Cut(strings.TrimSpace(text), " ")
	return ok && rest != "" && trigger.Runs(shell.BaseName(name))
}

// implied returns the files that a program runs without being told to, and that are code.
func implied(name string) string {
	switch name {
	case "cargo":
		return "build.rs"
	case "pytest", "py.test", "tox", "nox", "pip", "uv", "invoke", "inv", "fab", "scons", "doit":
		return "conftest.py setup.py noxfile.py tasks.py fabfile.py SConstruct dodo.py"
	case "gradle", "gradlew":
		return "build.gradle build.gradle.kts settings.gradle settings.gradle.kts init.gradle"
	case "rake", "bundle", "vagrant", "rspec":
		return "Rakefile Gemfile Vagrantfile spec/spec_helper.rb"
	case "mix":
		return "mix.exs"
	case "npx", "npm", "yarn", "pnpm", "bunx", "vite", "webpack", "jest", "vitest", "eslint", "gulp", "grunt", "tsc":
		return "vite.config.js vite.config.ts webpack.config.js jest.config.js vitest.config.ts eslint.config.js " +
			"gulpfile.js Gruntfile.js rollup.config.js next.config.js"
	case "task", "go-task", "pre-commit", "docker", "podman", "mise", "direnv":
		return "Taskfile.yml Taskfile.yaml .pre-commit-config.yaml Dockerfile Containerfile mise.toml .mise.toml .envrc"
	}
	return ""
}

// runsImplied runs what the text wrote into a file that a program runs without being told to.
func runsImplied(s *shell.Shell, name string, args []shell.Field) {
	for file := range strings.FieldsSeq(implied(name)) {
		run(s, file, s.Written(file))
	}
	flake(s, name, args)
	if name == "mvn" || name == "mvnw" {
		command := ""
		for _, a := range args { // the plugin exec has a command in two
			for _, option := range [...]string{"-Dexec.executable=", "-Dexec.args="} {
				if value, ok := strings.CutPrefix(a.Code(), option); ok {
					command = strings.TrimSpace(command + " " + value)
				}
			}
		}
		s.MaybeRun(command)
	}
	if name == "gradle" || name == "gradlew" {
		p := shell.ParseFlags(args, "Ibc", "init-script build-file settings-file")
		for _, o := range p.Values {
			run(s, "init.gradle", s.Open(o.Value).Text)
		}
	}
}

// run runs the code of such a file. In those that are not of a language, each line may have
// a command, behind a name or a dash.
func run(s *shell.Shell, file, text string) {
	if text == "" || !s.Spend(len(text)) {
		return
	}
	language := ""
	switch ext := path.Ext(file); ext {
	case ".py":
		language = "python"
	case ".js", ".ts":
		language = "node"
	case ".rs", ".exs", ".gradle", ".kts":
		language = strings.TrimPrefix(ext, ".")
	case "":
		if file == "SConstruct" {
			language = "python"
		} else if !strings.HasSuffix(file, "file") || strings.HasSuffix(file, "nerfile") || file == "Dockerfile" {
			break
		} else {
			language = "ruby"
		}
	case ".rb":
		language = "ruby"
	}
	if language != "" {
		s.Feed(shell.Stream{Kind: shell.Text, Text: text}, language)
		return
	}
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSpace(line), "- ")
		if !IsCommand(line) {
			if _, behind, ok := strings.Cut(line, ": "); ok {
				line = behind
			} else if _, behind, ok := strings.Cut(line, "= "); ok {
				line = behind
			} else {
				line = strings.TrimPrefix(line, "RUN ")
			}
		}
		if line = strings.Trim(line, `"'[] `); IsCommand(line) {
			s.MaybeRun(line)
		}
	}
}

// flake judges what nix runs from elsewhere.
func flake(s *shell.Shell, name string, args []shell.Field) {
	if name != "nix" || len(args) < 2 || !shell.In(args[0].Text, "run shell develop") {
		return
	}
	for _, a := range args[1:] {
		scheme, rest, ok := strings.Cut(a.Text, ":")
		if ok && !strings.HasPrefix(strings.ToLower(rest), "nixos/nixpkgs") &&
			(shell.In(scheme, "github gitlab sourcehut http https") || strings.HasPrefix(scheme, "git+") || strings.HasPrefix(scheme, "tarball+")) {
			s.Add(detector.RemoteExec)
		}
	}
}
