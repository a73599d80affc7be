package tds

// procedures are the system procedures that a client may call by number
// (MS-TDS 2.2.6.6).
var procedures = map[uint16]string{
	1: "sp_cursor", 2: "sp_cursoropen", 3: "sp_cursorprepare", 4: "sp_cursorexecute",
	5: "sp_cursorprepexec", 6: "sp_cursorunprepare", 7: "sp_cursorfetch", 8: "sp_cursoroption",
	9: "sp_cursorclose", 10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute",
	13: "sp_prepexec", 14: "sp_prepexecrpc", 15: "sp_unprepare",
}

const (
	procByID = 0xffff
	// rpcNext separates the calls of one message, rpcNoExec stands for a call
	// that is not to be run.
	rpcNext   = 0xff
	rpcNoExec = 0xfe

	paramOutput    = 0x01
	paramDefault   = 0x02
	paramEncrypted = 0x08

	// maxParams is the limit of SQL Server (maximum-capacity-specifications:
	// 2,100 parameters of a procedure), with room for the statement and the
	// declarations of sp_executesql in front of them.
	maxParams = 2100 + 2
	// maxCalls of one message is our own bound.
	maxCalls = 1000
)

// rpc is one call of an RPC message.
type rpc struct {
	proc   string
	params []Param
}

// decodeRPC reads the calls of an RPC message, after its headers.
func decodeRPC(m *message) []rpc {
	var calls []rpc
	for {
		call := rpc{}
		n := m.u16()
		if n == procByID {
			id := m.u16()
			name, ok := procedures[id]
			if !ok {
				m.malformed("procedure number %d", id)
			}
			call.proc = name
		} else {
			call.proc = decodeUTF16(m.bytes(2 * int(n)))
		}
		m.u16() // options: recompile and metadata, which only a plan cache would mind
		next := m.params(&call)
		if m.err != nil {
			return nil
		}
		calls = append(calls, call)
		if !next {
			return calls
		}
		if len(calls) == maxCalls {
			m.malformed("more than %d calls in one message", maxCalls)
			return nil
		}
	}
}

// params reads the parameters of a call; true says that another call follows.
func (m *message) params(call *rpc) bool {
	for m.more() {
		switch m.buf[m.pos] {
		case rpcNext:
			m.pos++
			return m.more()
		case rpcNoExec:
			m.malformed("an RPC that is not to be run")
			return false
		}
		if len(call.params) == maxParams {
			m.malformed("more than %d parameters", maxParams)
			return false
		}
		call.params = append(call.params, m.param())
	}
	return false
}

func (m *message) param() Param {
	p := Param{Name: m.shortText()}
	flags := m.u8()
	p.Output = flags&paramOutput != 0
	p.Default = flags&paramDefault != 0
	if flags&paramEncrypted != 0 {
		m.malformed("parameter %q is encrypted, which this server does not model", p.Name)
	}
	if !m.more() {
		m.bytes(1) // sets the error of a message that ends here
		return p
	}
	if m.buf[m.pos] == idTable {
		m.pos++
		p.Type.Kind = tableKind
		p.Table = m.table()
		return p
	}
	w := m.typeInfo()
	if m.err == nil {
		p.Type, p.Value = w.typ, m.value(&w, false)
	}
	return p
}
