package infra

import (
	"strings"
	"testing"
)

// decided are the parameters of a file that name a resource, or say whether or how
// often it is made.
func (f *file) decided() map[string]*node {
	found := map[string]*node{}
	var visit func(n *node)
	visit = func(n *node) {
		n.walk(func(c *node) {
			if c.Kind != "identifier" {
				return
			}
			if _, known := f.params[c.Text]; known {
				found[c.Text] = n
			} else if of := f.vars[c.Text]; of != nil && of != n {
				visit(of)
			}
		})
	}
	for _, r := range f.resources {
		if name := r.body.property("name"); name != nil {
			visit(name)
		}
		r.whole.walk(func(n *node) {
			switch n.Kind {
			case "if_statement":
				visit(n.child("parenthesized_expression"))
			case "for_statement":
				visit(n.Children[4])
			}
		})
	}
	return found
}

// runtime says whether an expression waits for something that is deployed.
func (f *file) runtime(n *node) bool {
	waits := false
	n.walk(func(c *node) {
		if c.Kind == "property_identifier" && c.Text == "outputs" {
			waits = true
		}
		if of := f.vars[c.Text]; c.Kind == "identifier" && of != nil && of != n && f.runtime(of) {
			waits = true
		}
	})
	return waits
}

// TestWhatIfSeesEverything: what-if shows nothing of a module where the name, the
// condition or the loop of a resource waits for an output of another one (the
// linter's what-if-short-circuiting).
func TestWhatIfSeesEverything(t *testing.T) {
	all := bicep(t)
	seen := 0
	for _, f := range all {
		for name, m := range f.modules {
			for parameter := range all[m.path].decided() {
				value := m.body.property("params").property(parameter)
				if value == nil {
					continue
				}
				seen++
				if f.runtime(value) {
					t.Errorf("%s:%d: %s decides what module %s makes, and is known only once %s is there", f.name, value.Line, parameter, name, value.Text)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d such parameters were found", seen)
	}
}

// TestRoleAssignments: an assignment has a name that is the same every time, is of
// one resource and not of a group, and says that it is for an identity, whose
// replication need not be waited for then (azure-docs,
// role-based-access-control/role-assignments-template.md).
func TestRoleAssignments(t *testing.T) {
	seen := 0
	for _, f := range bicep(t) {
		for id, r := range f.resources {
			if !strings.HasPrefix(r.of, "Microsoft.Authorization/roleAssignments@") {
				continue
			}
			seen++
			fail := func(what string) { t.Errorf("%s:%d: %s: %s", f.name, r.body.Line, id, what) }
			name := r.body.property("name")
			if name.Kind != "call_expression" || name.Children[0].Text != "guid" {
				fail("its name is no guid(…)")
				continue
			}
			text := name.child("arguments").Text
			role := ""
			for v := range f.vars {
				if strings.HasSuffix(v, "RoleId") && strings.Contains(text, v) {
					role = v
				}
			}
			if !strings.Contains(text, ".id,") || !strings.Contains(strings.ToLower(text), "identityid,") || role == "" {
				fail("its name is not made of the scope, the identity and the role: " + text)
			}
			properties := r.body.property("properties")
			if got := properties.property("roleDefinitionId").Text; got != "subscriptionResourceId('Microsoft.Authorization/roleDefinitions', "+role+")" {
				fail("its role is " + got)
			}
			if got := properties.property("principalType"); got == nil || got.Text != "'ServicePrincipal'" {
				fail("it does not say that the principal is a ServicePrincipal")
			}
			scope := r.body.property("scope")
			if scope == nil {
				fail("it is for the whole resource group")
				continue
			}
			of := scope
			if of.Kind == "subscript_expression" {
				of = of.Children[0]
			}
			if _, known := f.resources[of.Text]; !known {
				fail("its scope is " + scope.Text + ", which is no resource of the file")
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d role assignments were found, want four", seen)
	}
}
