package emulator

import (
	"crypto/subtle"
	"fmt"
	"strings"
)

// Rights are what the holder of a key or a token may do.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-sas
type Rights uint8

// The rights. RightManage includes the others, as on the service, which gives
// it only together with them.
const (
	RightSend Rights = 1 << iota
	RightListen
	RightManage
)

func (r Rights) allow(needed Rights) bool { return r&(needed|RightManage) != 0 }

func (r Rights) String() string {
	if r&RightManage != 0 {
		return "Manage"
	}
	var names []string
	if r&RightSend != 0 {
		names = append(names, "Send")
	}
	if r&RightListen != 0 {
		names = append(names, "Listen")
	}
	return strings.Join(names, ",")
}

// Policy is a shared access policy of the namespace: a name with a key.
type Policy struct {
	Name   string
	Key    string
	Rights Rights
}

// rootPolicy is the name of the policy that every namespace is made with.
const rootPolicy = "RootManageSharedAccessKey"

// policies are the root policy and the configured ones, by name.
type policies map[string]Policy

func newPolicies(c Config) policies {
	all := policies{rootPolicy: {Name: rootPolicy, Key: c.SharedAccessKey, Rights: RightManage}}
	for _, p := range c.Policies {
		all[p.Name] = p
	}
	return all
}

// password is what a policy's name and key allow, 0 for nothing.
func (all policies) password(name, key string) Rights {
	p, ok := all[name]
	if !ok || subtle.ConstantTimeCompare([]byte(p.Key), []byte(key)) != 1 {
		return 0
	}
	return p.Rights
}

func (p Policy) validate() error {
	switch {
	case p.Name == "" || p.Key == "":
		return invalid("Policies", "a policy needs a Name and a Key; this one is %q", p.Name)
	case p.Name == rootPolicy:
		return invalid("Policies", "the key of %s is SharedAccessKey", rootPolicy)
	case p.Rights == 0 || p.Rights >= RightManage<<1:
		return invalid("Policies", "Rights %d of %q", p.Rights, p.Name)
	}
	return nil
}

// PolicyConnectionString is ConnectionString with another policy's name and
// key. It panics on a policy that is not configured.
func (s *Server) PolicyConnectionString(policy string) string {
	p, ok := s.policies[policy]
	if !ok {
		panic(fmt.Sprintf("emulator: there is no policy %q", policy))
	}
	return s.connectionString(p)
}
