package sqltype

import "fmt"

// Error is a conversion or arithmetic error under its SQL Server number.
type Error struct {
	Number  int32
	Message string
}

func (e *Error) Error() string { return e.Message }

// The numbers and texts are those of sys.messages (sql-docs, "Database engine
// errors and events").

func errConversionText(v Value, to Type) error {
	return &Error{245, fmt.Sprintf("Conversion failed when converting the %s value '%s' to data type %s.", v.Kind, v.S, to.Name())}
}

func errConversionType(from Kind, to Type) error {
	return &Error{8114, fmt.Sprintf("Error converting data type %s to %s.", numericName(from), numericName(to.Kind))}
}

func errDateText() error {
	return &Error{241, "Conversion failed when converting date and/or time from character string."}
}

func errGUIDText() error {
	return &Error{8169, "Conversion failed when converting from a character string to uniqueidentifier."}
}

func errOverflow(to Type) error {
	return &Error{8115, fmt.Sprintf("Arithmetic overflow error converting expression to data type %s.", numericName(to.Kind))}
}

func errOverflowFrom(from Kind, to Type) error {
	return &Error{8115, fmt.Sprintf("Arithmetic overflow error converting %s to data type %s.", numericName(from), numericName(to.Kind))}
}

func errOverflowValue(v Value, to Type) error {
	return &Error{220, fmt.Sprintf("Arithmetic overflow error for data type %s, value = %s.", to.Name(), Format(v))}
}

func errOverflowFloat(f float64, to Type) error {
	return &Error{232, fmt.Sprintf("Arithmetic overflow error for type %s, value = %f.", to.Name(), f)}
}

func errTextOverflow(v Value, to Type) error {
	return &Error{248, fmt.Sprintf("The conversion of the %s value '%s' overflowed an %s column.", v.Kind, v.S, to.Name())}
}

func errNotAllowed(from Kind, to Type) error {
	return &Error{529, fmt.Sprintf("Explicit conversion from data type %s to %s is not allowed.", from, to.Name())}
}

func errDateRange(from, to Type) error {
	return &Error{242, fmt.Sprintf("The conversion of a %s data type to a %s data type resulted in an out-of-range value.", from.Name(), to.Name())}
}

// numericName: the messages call decimal "numeric".
func numericName(k Kind) string {
	if k == Decimal {
		return "numeric"
	}
	return k.String()
}
