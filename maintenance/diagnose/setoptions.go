package diagnose

import "strings"

// setOption is one bit of set_options (sql-docs,
// sys-dm-exec-plan-attributes-transact-sql.md).
type setOption struct {
	bit  int
	name string
	// session: SET changes it, so that two connections can differ.
	session bool
	// filtered is what a filtered index needs it to be
	// (create-index-transact-sql.md, Required SET options); 0 where it does not
	// matter, 1 ON, -1 OFF.
	filtered int
}

var setOptions = []setOption{
	{1, "ANSI_PADDING", true, 1},
	{2, "ParallelPlan", false, 0},
	{4, "FORCEPLAN", true, 0},
	{8, "CONCAT_NULL_YIELDS_NULL", true, 1},
	{16, "ANSI_WARNINGS", true, 1},
	{32, "ANSI_NULLS", true, 1},
	{64, "QUOTED_IDENTIFIER", true, 1},
	{128, "ANSI_NULL_DFLT_ON", true, 0},
	{256, "ANSI_NULL_DFLT_OFF", true, 0},
	{512, "NoBrowseTable", false, 0},
	{1024, "TriggerOneRow", false, 0},
	{2048, "ResyncQuery", false, 0},
	// ANSI_WARNINGS ON implies it at compatibility level 90 and higher
	// (set-arithabort-transact-sql.md), so that the filtered index does not need
	// it by itself; it stays a key of the plan cache.
	{4096, "ARITHABORT", true, 0},
	{8192, "NUMERIC_ROUNDABORT", true, -1},
	{16384, "DATEFIRST", true, 0},
	{32768, "DATEFORMAT", true, 0},
	{65536, "LANGUAGE", true, 0},
	{131072, "PARAMETERIZATION FORCED", false, 0},
	{262144, "ROWCOUNT", true, 0},
}

// bitForced: the database's PARAMETERIZATION was FORCED.
const bitForced = 131072

// decodeOptions names the bits that are set.
func decodeOptions(bits int) []string {
	names := []string{}
	for _, o := range setOptions {
		if bits&o.bit != 0 {
			names = append(names, o.name)
		}
	}
	return names
}

// differing names the session's options in which some of the values differ.
func differing(values []int) []string {
	and, or := -1, 0
	for _, v := range values {
		and &= v
		or |= v
	}
	names := []string{}
	for _, o := range setOptions {
		if o.session && or&o.bit != 0 && and&o.bit == 0 {
			names = append(names, o.name)
		}
	}
	return names
}

// wrongForFiltered names the options by which a session cannot use a filtered
// index, and cannot write a table that has one (error 1934).
func wrongForFiltered(bits int) []string {
	names := []string{}
	for _, o := range setOptions {
		if on := bits&o.bit != 0; o.filtered > 0 && !on || o.filtered < 0 && on {
			names = append(names, o.name+" "+onOff(on))
		}
	}
	return names
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// describeOptions says how the named options stand in one value.
func describeOptions(bits int, names []string) string {
	parts := make([]string, 0, len(names))
	for _, o := range setOptions {
		for _, n := range names {
			if o.name == n {
				parts = append(parts, n+" "+onOff(bits&o.bit != 0))
			}
		}
	}
	return strings.Join(parts, ", ")
}
