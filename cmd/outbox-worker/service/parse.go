package service

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Version and Commit are set by the linker in releases.
var (
	Version = ""
	Commit  = ""
)

// BuildVersion is Version, or what the Go toolchain noted of the module.
func BuildVersion() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// BuildCommit is Commit, or the revision that the Go toolchain noted when it
// built inside a checkout; "unknown" when there is neither.
func BuildCommit() string {
	if Commit != "" {
		return Commit
	}
	revision, modified := "", false
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
	}
	switch {
	case revision == "":
		return "unknown"
	case modified:
		return revision + ", modified"
	}
	return revision
}

// exit is how kong's own endings (help, version) leave Parse.
type exit int

// VersionFlag prints the version and ends the program. It is kong.VersionFlag, which
// does not see that nothing could be printed.
type VersionFlag bool

// BeforeReset is called by the parser where the flag is given.
func (VersionFlag) BeforeReset(app *kong.Kong, vars kong.Vars) error {
	if _, err := fmt.Fprintln(app.Stdout, vars["version"]); err != nil {
		return printError{err}
	}
	app.Exit(0)
	return nil
}

// printError is why help or version could not be printed.
type printError struct{ error }

// Parse fills target, a struct with kong tags, from args and OUTBOX_…
// variables. When there is nothing left to do it returns false and the exit
// code: 0 after help or version, 1 where they could not be printed, 2 after wrong
// usage; what is wrong it has written to stderr as one line.
func Parse(target any, name, what string, args []string, stdout, stderr io.Writer) (code int, ok bool) {
	_, code, ok = ParseCommand(target, name, what, nil, args, stdout, stderr)
	return code, ok
}

// ParseCommand is Parse for programs that have commands; the context runs the
// chosen one. unused are the flags of the program that a command does not look at,
// by command: its help leaves them out.
func ParseCommand(target any, name, what string, unused map[string][]string, args []string, stdout, stderr io.Writer) (chosen *kong.Context, code int, ok bool) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case exit:
			chosen, code, ok = nil, int(e), false
		default:
			panic(e)
		}
	}()
	vars := kong.Vars(Defaults())
	vars["version"] = fmt.Sprintf("%s %s (commit %s, %s)", name, BuildVersion(), BuildCommit(), runtime.Version())
	vars["credentials"] = credentialNames()
	parser, err := kong.New(target,
		kong.Name(name), kong.Description(what),
		kong.DefaultEnvars("OUTBOX"),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(func(options kong.HelpOptions, help *kong.Context) error {
			for _, flag := range help.Flags() {
				flag.Hidden = flag.Hidden || slices.Contains(unused[help.Command()], flag.Name)
			}
			if err := kong.DefaultHelpPrinter(options, help); err != nil {
				return printError{err}
			}
			return nil
		}),
		vars,
	)
	if err != nil {
		panic(err) // the struct tags are wrong, whatever was typed
	}
	ignoreEmptyVariables(parser.Model.Node)
	if chosen, err = parser.Parse(args); err == nil {
		trimSecrets(chosen)
		err = typedEmpty(chosen)
	}
	if unprinted := (printError{}); errors.As(err, &unprinted) {
		fmt.Fprintf(stderr, "%s: print what was asked for: %v\n", name, unprinted)
		return nil, 1, false
	}
	if err != nil {
		message := withoutSecrets(err.Error(), args)
		if strings.Contains(message, "expected duration") {
			message += "; write 90s, 30m or 72h"
		}
		fmt.Fprintf(stderr, "%s: %s (--help lists all settings)\n", name, message)
		return nil, 2, false
	}
	return chosen, 0, true
}

// ignoreEmptyVariables makes a variable that is there and empty the same as none:
// compose files write ${X:-} for what may be left out.
func ignoreEmptyVariables(node *kong.Node) {
	for _, flag := range node.Flags {
		flag.Tag.Envs = slices.DeleteFunc(slices.Clone(flag.Tag.Envs), func(name string) bool {
			value, ok := os.LookupEnv(name)
			return ok && value == ""
		})
	}
	for _, child := range node.Children {
		ignoreEmptyVariables(child)
	}
}

// trimSecrets takes away the line break at the end that a secret in a file brings
// with it; no DSN, connection string or host name begins or ends with white space.
func trimSecrets(chosen *kong.Context) {
	for _, flag := range chosen.Flags() {
		switch flag.Name {
		case "sql-dsn", "servicebus-connection-string", "servicebus-namespace":
			flag.Target.SetString(strings.TrimSpace(flag.Target.String()))
		}
	}
}

// typedEmpty refuses a flag that was typed with nothing in it, and a list with an
// empty name: a shell variable that was never set must not mean all indexes, any
// hour of the day, or the default.
func typedEmpty(chosen *kong.Context) error {
	for _, typed := range chosen.Path {
		if typed.Flag == nil {
			continue
		}
		v := reflect.Indirect(typed.Flag.Target)
		names, _ := v.Interface().([]string)
		if kind := v.Kind(); (kind == reflect.String || kind == reflect.Slice) && v.Len() == 0 || slices.Contains(names, "") {
			return fmt.Errorf("--%s is empty, or an item of it is", typed.Flag.Name)
		}
	}
	return nil
}

// withoutSecrets blots out what was typed where it may be a secret: a DSN or a
// connection string whose flag was forgotten, or that stands behind another.
func withoutSecrets(message string, args []string) string {
	for _, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")
		if !ok || !strings.HasPrefix(flag, "-") {
			value = arg
		}
		if strings.ContainsAny(value, "@;") || len(value) > 60 {
			message = strings.ReplaceAll(message, value, "…")
		}
	}
	return message
}

// DefaultSettings are what the flags say when nobody says anything, for
// programs that embed a worker. The environment is not looked at.
func DefaultSettings() (Settings, error) {
	var s Settings
	vars := kong.Vars(Defaults())
	vars["credentials"] = credentialNames()
	parser, err := kong.New(&s, vars, kong.Exit(func(int) {}))
	if err != nil {
		return s, err
	}
	_, err = parser.Parse(nil)
	return s, err
}
