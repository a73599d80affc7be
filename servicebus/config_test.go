package servicebus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"azsqloutbox/servicebus"
	"azsqloutbox/servicebus/emulator"
)

const (
	secretKey      = "c2VjcmV0LWtleQ=="
	fineConnString = "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=worker;SharedAccessKey=" + secretKey
)

type fixedToken struct{}

func (fixedToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	at := time.Now().Add(time.Hour)
	return azcore.AccessToken{Token: emulator.EntraToken(at), ExpiresOn: at}, nil
}

func mustRoutes(t testing.TB, routes ...servicebus.Route) servicebus.Routes {
	t.Helper()
	r, err := servicebus.NewRoutes(routes...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConfigValidate(t *testing.T) {
	routes := mustRoutes(t, servicebus.Route{Entity: "orders"})
	change := func(f func(*servicebus.Config)) servicebus.Config {
		c := servicebus.Config{ConnectionString: fineConnString, Routes: routes, Source: "db.dbo.outbox_event"}
		f(&c)
		return c
	}
	for name, c := range map[string]struct {
		cfg  servicebus.Config
		want string // "" for a valid one
	}{
		"defaults": {change(func(c *servicebus.Config) {}), ""},
		"signature": {change(func(c *servicebus.Config) {
			c.ConnectionString = "Endpoint=sb://h/;SharedAccessSignature=sr=x&sig=" + secretKey
		}), ""},
		"credential": {change(func(c *servicebus.Config) { c.ConnectionString, c.Namespace, c.Credential = "", "a.b", fixedToken{} }), ""},
		"amqps":      {change(func(c *servicebus.Config) { c.ConnectionString = "Endpoint=amqps://h/;SharedAccessSignature=x" }), ""},
		"most":       {change(func(c *servicebus.Config) { c.Connections, c.MaxBatchMessages = 5000, 4500 }), ""},
		"EntityPath": {change(func(c *servicebus.Config) { c.ConnectionString += ";EntityPath=Orders" }), ""}, // one entity to Service Bus
		"own entity": {change(func(c *servicebus.Config) { c.ConnectionString += ";EntityPath=orders" }), ""},

		"neither":            {change(func(c *servicebus.Config) { c.ConnectionString = "" }), "ConnectionString or Namespace is required"},
		"both":               {change(func(c *servicebus.Config) { c.Namespace = "a.b" }), "ConnectionString and Namespace are both set"},
		"no credential":      {change(func(c *servicebus.Config) { c.ConnectionString, c.Namespace = "", "a.b" }), "Credential is required"},
		"namespace as URL":   {change(func(c *servicebus.Config) { c.ConnectionString, c.Namespace = "", "sb://a.b" }), `Namespace "sb://a.b" is no host name`},
		"key in a wrong way": {change(func(c *servicebus.Config) { c.ConnectionString = secretKey }), "ConnectionString has no Endpoint"},
		"no equals sign":     {change(func(c *servicebus.Config) { c.ConnectionString = "Endpoint" }), "ConnectionString has a part without ="},
		"no key":             {change(func(c *servicebus.Config) { c.ConnectionString = "Endpoint=sb://h/;SharedAccessKeyName=k" }), "neither SharedAccessKey nor SharedAccessSignature"},
		"no key name":        {change(func(c *servicebus.Config) { c.ConnectionString = "Endpoint=sb://h/;SharedAccessKey=" + secretKey }), "no SharedAccessKeyName"},
		"emulator typo":      {change(func(c *servicebus.Config) { c.ConnectionString += ";UseDevelopmentEmulator=" + secretKey }), "UseDevelopmentEmulator is neither true nor false"},
		"other entity":       {change(func(c *servicebus.Config) { c.ConnectionString += ";EntityPath=" + secretKey }), `a route leads to "orders", which is another`},
		"no routes":          {change(func(c *servicebus.Config) { c.Routes = servicebus.Routes{} }), "Routes is empty"},
		"no source":          {change(func(c *servicebus.Config) { c.Source = "" }), "Source is required"},
		"batch bytes":        {change(func(c *servicebus.Config) { c.MaxBatchBytes = -1 }), "MaxBatchBytes -1"},
		"batch messages":     {change(func(c *servicebus.Config) { c.MaxBatchMessages = 4501 }), "MaxBatchMessages 4501 is not between 1 and 4500"},
		"in flight":          {change(func(c *servicebus.Config) { c.MaxInFlight = -1 }), "MaxInFlight -1"},
		"connections":        {change(func(c *servicebus.Config) { c.Connections = 5001 }), "Connections 5001"},
		"send timeout":       {change(func(c *servicebus.Config) { c.SendTimeout = time.Millisecond }), "SendTimeout 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := servicebus.New(c.cfg)
			if c.want == "" {
				if err != nil {
					t.Fatalf("New: %v", err)
				}
				if err := p.Close(context.Background()); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("New: %v, want an error with %q", err, c.want)
			}
			if strings.Contains(err.Error(), secretKey) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

func TestNewCredential(t *testing.T) {
	for _, kind := range []string{"", servicebus.CredentialManagedIdentity, servicebus.CredentialAzureCLI, servicebus.CredentialDefault} {
		if credential, err := servicebus.NewCredential(kind, ""); err != nil || credential == nil {
			t.Errorf("NewCredential(%q): %v, %v", kind, credential, err)
		}
	}
	_, err := servicebus.NewCredential("magic", "")
	if err == nil || !strings.Contains(err.Error(), `"magic": it may be managed-identity, workload-identity, azure-cli or default`) {
		t.Errorf("NewCredential of an unknown kind: %v", err)
	}
}
