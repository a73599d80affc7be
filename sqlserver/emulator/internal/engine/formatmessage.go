package engine

import (
	"fmt"
	"strings"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

// formatMessage fills %s, %d, %i, %u, %x and %o (sql-docs, "RAISERROR"), with
// flags, width and precision.
func formatMessage(format string, args []sqltype.Value) string {
	var b strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		end := i + 1
		for end < len(format) && strings.IndexByte("-+ #0123456789.Ilh", format[end]) >= 0 {
			end++
		}
		if end >= len(format) {
			b.WriteString(format[i:])
			break
		}
		verb := format[end]
		if verb == '%' {
			b.WriteByte('%')
			i = end
			continue
		}
		arg := sqltype.Value{}
		if next < len(args) {
			arg = args[next]
		}
		next++
		spec := "%" + strings.NewReplacer("I64", "", "l", "", "h", "").Replace(format[i+1:end])
		switch {
		case arg.IsNull():
			b.WriteString("(null)")
		case verb == 's':
			fmt.Fprintf(&b, spec+"s", sqltype.Format(arg))
		case verb == 'd' || verb == 'i' || verb == 'u':
			fmt.Fprintf(&b, spec+"d", arg.N)
		case verb == 'x' || verb == 'X' || verb == 'o':
			fmt.Fprintf(&b, spec+string(verb), arg.N)
		}
		i = end
	}
	return b.String()
}

// formatErrors refuses what RAISERROR does not take (sql-docs, "RAISERROR"): a
// conversion that there is none of, and an argument of a type that its conversion
// is not for.
func formatErrors(format string, args []sqltype.Value) error {
	for i, a := range args {
		if k := a.Kind; !(a.IsNull() || k.IsText() || k.IsBinary() || k.IsInteger() && k != sqltype.Bit) {
			return raise(2748, 16, 1, "Cannot specify %s data type (parameter %d) as a substitution parameter.", k, i+4)
		}
	}
	next := 0
	for rest := strings.ReplaceAll(format, "%%", ""); ; next++ {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return nil
		}
		spec := strings.TrimLeft(after, "-+ #0123456789.Ilh")
		switch {
		case spec == "" || !strings.ContainsRune("sdiuxXo", rune(spec[0])):
			return raise(2787, 16, 1, "Invalid format specification: '%s'.", "%"+after[:min(len(after), len(after)-len(spec)+1)])
		case next < len(args) && !args[next].IsNull() && args[next].Kind.IsInteger() == (spec[0] == 's'):
			return raise(2786, 16, 1, "The data type of substitution parameter %d does not match the expected type of the format specification.", next+1)
		}
		rest = spec[1:]
	}
}
