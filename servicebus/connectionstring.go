package servicebus

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// connectionString is what a connection string says; azservicebus reads it too,
// but keeps its parser to itself (internal/conn).
type connectionString struct {
	host       string // with its port, where it names one
	entityPath string
	// secrets are the key and the signature: no error may show them.
	secrets []string
	// plain is true with UseDevelopmentEmulator=true: no TLS.
	plain bool
}

// parseConnectionString reads text. Its errors name what is missing and quote
// nothing: a slip of the hand can put the key anywhere.
func parseConnectionString(text string) (connectionString, error) {
	var c connectionString
	var endpoint, keyName bool
	for part := range strings.SplitSeq(text, ";") {
		if part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return connectionString{}, errors.New("has a part without =")
		}
		switch {
		case strings.EqualFold(name, "Endpoint"):
			u, err := url.Parse(value)
			endpoint = err == nil && u.Host != "" && (u.Scheme == "sb" || u.Scheme == "amqps")
			if endpoint {
				c.host = u.Host
			}
		case strings.EqualFold(name, "EntityPath"):
			c.entityPath = value
		case strings.EqualFold(name, "SharedAccessKeyName"):
			keyName = value != ""
		case strings.EqualFold(name, "SharedAccessKey"), strings.EqualFold(name, "SharedAccessSignature"):
			if value != "" {
				c.secrets = append(c.secrets, value)
			}
			keyName = keyName || strings.EqualFold(name, "SharedAccessSignature")
		case strings.EqualFold(name, "UseDevelopmentEmulator"):
			plain, err := strconv.ParseBool(value)
			if err != nil {
				return connectionString{}, errors.New("UseDevelopmentEmulator is neither true nor false")
			}
			c.plain = plain
		}
	}
	switch {
	case !endpoint:
		return connectionString{}, errors.New("has no Endpoint=sb://<host>")
	case !keyName:
		return connectionString{}, errors.New("has no SharedAccessKeyName")
	case len(c.secrets) == 0:
		return connectionString{}, errors.New("has neither SharedAccessKey nor SharedAccessSignature")
	}
	return c, nil
}

// validateConnectionString checks that the string is whole, and that it is good
// for every entity that a route leads to.
func (c Config) validateConnectionString() error {
	parsed, err := parseConnectionString(c.ConnectionString)
	if err != nil {
		return fmt.Errorf("config: ConnectionString %w; it must look like Endpoint=sb://<namespace>.servicebus.windows.net/;SharedAccessKeyName=<name>;SharedAccessKey=<key>", err)
	}
	if parsed.entityPath == "" {
		return nil
	}
	for _, entity := range c.Routes.Entities() {
		if !strings.EqualFold(entity, parsed.entityPath) {
			return fmt.Errorf("config: ConnectionString is good for one entity alone (its EntityPath), and a route leads to %q, which is another", entity)
		}
	}
	return nil
}
