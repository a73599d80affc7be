package emulator_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

func connectAs(t *testing.T, server *emulator.Server, name string) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(server.PolicyConnectionString(name),
		&azservicebus.ClientOptions{RetryOptions: impatient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func wantCode(t *testing.T, err error, want azservicebus.Code) {
	t.Helper()
	var e *azservicebus.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("%v, want code %s", err, want)
	}
}

func TestPoliciesAllowWhatTheirRightsSay(t *testing.T) {
	cfg := queues("q")
	cfg.Policies = []emulator.Policy{
		{Name: "send", Key: "a key", Rights: emulator.RightSend},
		{Name: "listen", Key: "another", Rights: emulator.RightListen},
	}
	server := start(t, cfg)
	producer, consumer := connectAs(t, server, "send"), connectAs(t, server, "listen")

	s := sender(t, producer, "q")
	send(t, s, message("a", "x"))
	if _, err := s.ScheduleMessages(within(t), numbered(1), time.Now().Add(time.Hour), nil); err != nil {
		t.Errorf("scheduling with the right to send: %v", err)
	}
	_, err := receiver(t, producer, "q", nil).ReceiveMessages(within(t), 1, nil)
	wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
	if _, err := receiver(t, producer, "q", nil).PeekMessages(within(t), 1, nil); err == nil {
		t.Error("a policy without Listen peeked")
	}

	receive(t, receiver(t, consumer, "q", nil), 1)
	err = sender(t, consumer, "q").SendMessage(within(t), message("b", "x"), nil)
	wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
	if _, err := sender(t, consumer, "q").ScheduleMessages(within(t), numbered(1), time.Now().Add(time.Hour), nil); err == nil {
		t.Error("a policy without Send scheduled a message")
	}
	if c := server.Counts("q"); c.Active != 1 || c.Scheduled != 1 {
		t.Errorf("counts are %+v, want one message and one that is scheduled", c)
	}
}

// credential gives out a token as azidentity does; without one of its own, a good
// one for an hour.
type credential struct{ token string }

func (c credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	at := time.Now().Add(time.Hour)
	return azcore.AccessToken{Token: cmp.Or(c.token, emulator.EntraToken(at)), ExpiresOn: at}, nil
}

// connectWithEntra is for a server whose certificate trust is for.
func connectWithEntra(t *testing.T, server *emulator.Server, trust *tls.Config, c credential) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClient(server.Addr(), c, &azservicebus.ClientOptions{RetryOptions: impatient, TLSConfig: trust})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func TestEntraTokensAllowWhatTheRoleSays(t *testing.T) {
	cfg := queues("q")
	var trust *tls.Config
	cfg.TLS, trust = certificate(t)
	cfg.EntraRights = emulator.RightSend
	server := start(t, cfg)
	client := connectWithEntra(t, server, trust, credential{})
	send(t, sender(t, client, "q"), message("a", "x"))
	_, err := receiver(t, client, "q", nil).ReceiveMessages(within(t), 1, nil)
	wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
}

func TestEntraTokensMustBeOursAndGood(t *testing.T) {
	cfg := queues("q")
	var trust *tls.Config
	cfg.TLS, trust = certificate(t)
	server := start(t, cfg)
	for name, token := range map[string]string{
		"expired":      emulator.EntraToken(time.Now().Add(-time.Minute)),
		"not a JWT":    "token",
		"for SQL":      "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"https://database.windows.net/","exp":9e9}`)) + ".c2ln",
		"no signature": strings.TrimRight(emulator.EntraToken(time.Now().Add(time.Hour)), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"),
	} {
		t.Run(name, func(t *testing.T) {
			err := sender(t, connectWithEntra(t, server, trust, credential{token}), "q").SendMessage(within(t), message("a", "x"), nil)
			wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
		})
	}
	if c := server.Counts("q"); c.Active != 0 {
		t.Errorf("%d messages were taken", c.Active)
	}
}

func TestEntraTokenEndsAtItsTime(t *testing.T) {
	cfg := queues("q")
	var trust *tls.Config
	cfg.TLS, trust = certificate(t)
	cfg.RoundTrip = 5 * time.Millisecond // as slowly as it is asked
	server := start(t, cfg)
	// The client is told an hour, so it does not renew: the links are to end.
	token := emulator.EntraToken(time.Now().Add(2 * time.Second))
	s := sender(t, connectWithEntra(t, server, trust, credential{token}), "q")
	send(t, s, message("a", "x"))
	var err error
	for end := time.Now().Add(patience); err == nil && time.Now().Before(end); {
		err = s.SendMessage(within(t), message("b", "x"), nil)
	}
	wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
}

func TestTokenThatExpiresInTheMiddleOfASend(t *testing.T) {
	server := start(t, queues("q", "other"))
	client := connect(t, server)
	s, bystander := sender(t, client, "q"), sender(t, client, "other")
	send(t, s, message("a", "x"))
	send(t, bystander, message("a", "x"))
	fault := server.Inject(emulator.Fault{Kind: emulator.ExpireToken, Entity: "q"})
	wantCode(t, s.SendMessage(within(t), message("b", "x"), nil), azservicebus.CodeUnauthorizedAccess)
	wantCode(t, bystander.SendMessage(within(t), message("c", "x"), nil), azservicebus.CodeUnauthorizedAccess)
	// A new sender puts a new token.
	send(t, sender(t, client, "q"), message("d", "x"))
	if c := server.Counts("q"); c.Active != 2 || fault.Fired() != 1 {
		t.Errorf("%d messages stored, want 2; fired %d times", c.Active, fault.Fired())
	}
}

// signature is a token as one hands it to somebody who must not have the key.
func signature(host string, expiry time.Time) string {
	resource := url.QueryEscape("amqp://" + host + "/q")
	mac := hmac.New(sha256.New, []byte("SAS_KEY_VALUE"))
	fmt.Fprintf(mac, "%s\n%d", resource, expiry.Unix())
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=RootManageSharedAccessKey", resource,
		url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))), expiry.Unix())
}

func TestSignatureOpensItsEntityOnly(t *testing.T) {
	server := start(t, queues("q", "other"))
	client, err := azservicebus.NewClientFromConnectionString(
		"Endpoint=sb://"+server.Addr()+";UseDevelopmentEmulator=true;SharedAccessSignature="+signature(server.Addr(), time.Now().Add(time.Hour)),
		&azservicebus.ClientOptions{RetryOptions: impatient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	send(t, sender(t, client, "q"), message("a", "x"))
	err = sender(t, client, "other").SendMessage(within(t), message("b", "x"), nil)
	wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
	if c := server.Counts("other"); c.Active != 0 {
		t.Errorf("%d messages in the other queue", c.Active)
	}
}

func TestSignatureEndsAtItsTime(t *testing.T) {
	server := start(t, queues("q"))
	client, err := azservicebus.NewClientFromConnectionString(
		"Endpoint=sb://"+server.Addr()+";UseDevelopmentEmulator=true;SharedAccessSignature="+signature(server.Addr(), time.Now().Add(2*time.Second)),
		&azservicebus.ClientOptions{RetryOptions: impatient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	s := sender(t, client, "q")
	send(t, s, message("a", "x"))
	for end := time.Now().Add(patience); err == nil && time.Now().Before(end); {
		err = s.SendMessage(within(t), message("b", "x"), nil)
	}
	wantCode(t, err, azservicebus.CodeUnauthorizedAccess)
	if err := sender(t, client, "q").SendMessage(within(t), message("c", "x"), nil); err == nil {
		t.Error("a signature was taken after its time")
	}
}
