package engine

import (
	"errors"

	"azsqloutbox/sqlserver/emulator/internal/sqltype"
)

var _ = register(map[string]function{
	"ISJSON":     {1, 2, values(fixed(intType), isJSON)},
	"JSON_VALUE": {1, 2, values(fixed(nvarcharType(4000)), jsonValueOf)},
	"JSON_QUERY": {1, 2, values(fixed(nvarcharType(sqltype.Max)), jsonQueryOf)},
	"STRING_ESCAPE": {2, 2, values(fixed(nvarcharType(sqltype.Max)), func(*env, []sqltype.Value) (sqltype.Value, error) {
		return sqltype.Value{}, notModelled("STRING_ESCAPE")
	})},
})

func isJSON(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	j, err := parseJSON(v[0].S)
	kind := ""
	if len(v) > 1 {
		kind = v[1].S
	}
	ok := err == nil
	switch kind {
	case "", "VALUE":
		// without a second argument only objects and arrays are JSON
		ok = ok && (kind == "VALUE" || j.kind == jsonObject || j.kind == jsonArray)
	case "OBJECT":
		ok = ok && j.kind == jsonObject
	case "ARRAY":
		ok = ok && j.kind == jsonArray
	case "SCALAR":
		ok = ok && (j.kind == jsonString || j.kind == jsonNumber)
	}
	if ok {
		return intValue(1), nil
	}
	return intValue(0), nil
}

func jsonAt(v []sqltype.Value) (jsonValue, jsonPath, bool, error) {
	root, err := parseJSON(v[0].S)
	if err != nil {
		return root, jsonPath{}, false, err
	}
	text := "$"
	if len(v) > 1 {
		text = v[1].S
	}
	path, err := parseJSONPath(text)
	if err != nil {
		return root, path, false, err
	}
	found, ok, err := path.find(root)
	return found, path, ok, err
}

func jsonValueOf(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	j, path, ok, err := jsonAt(v)
	if err != nil || !ok || j.kind == jsonNull {
		return sqltype.Value{}, err
	}
	if j.kind == jsonArray || j.kind == jsonObject {
		if path.strict {
			return sqltype.Value{}, raise(13623, 16, 1, "Scalar value cannot be found in the specified JSON path.")
		}
		return sqltype.Value{}, nil
	}
	out, err := sqltype.Assign(nvarcharValue(j.text()), nvarcharType(4000))
	var cut *sqltype.Truncation
	if errors.As(err, &cut) {
		if path.strict {
			return out, raise(13625, 16, 1, "String value in the specified JSON path would be truncated.")
		}
		return sqltype.Value{}, nil
	}
	return out, err
}

func jsonQueryOf(_ *env, v []sqltype.Value) (sqltype.Value, error) {
	j, path, ok, err := jsonAt(v)
	if err != nil || !ok {
		return sqltype.Value{}, err
	}
	if j.kind != jsonArray && j.kind != jsonObject {
		if path.strict {
			return sqltype.Value{}, raise(13624, 16, 1, "Object or array cannot be found in the specified JSON path.")
		}
		return sqltype.Value{}, nil
	}
	return nvarcharValue(j.raw), nil
}
