package emulator_test

import (
	"net"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestOutageEndsAtTheSameAddress(t *testing.T) {
	server := start(t, queues("q"))
	address := server.Addr()
	client := connectWith(t, server, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 100, RetryDelay: time.Millisecond, MaxRetryDelay: 10 * time.Millisecond},
	})
	s := sender(t, client, "q")
	send(t, s, message("before", "x"))
	for range 2 {
		server.Suspend()
		server.Suspend()
		if n, err := net.Dial("tcp", address); err == nil {
			_ = n.Close()
			t.Error("a connection was made in an outage")
		}
		if st := server.Stats(); server.Addr() != address {
			t.Errorf("the address is %s, was %s; %+v", server.Addr(), address, st)
		}
		sent := make(chan error, 1)
		go func() { sent <- s.SendMessage(within(t), message("within", "x"), nil) }()
		for range 2 {
			if err := server.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
	if c := server.Counts("q"); c.Active != 3 {
		t.Errorf("%d messages stored, want the one before and one of each outage", c.Active)
	}
	server.Suspend()
	server.Close()
	if err := server.Resume(); err == nil {
		t.Error("a server that is closed resumed")
	}
}

func TestResumeSaysThatTheAddressIsTaken(t *testing.T) {
	server := start(t, queues("q"))
	server.Suspend()
	other, err := net.Listen("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Resume(); err == nil {
		t.Error("resumed at an address that another listens on")
	}
	_ = other.Close()
	if err := server.Resume(); err != nil {
		t.Error(err)
	}
}
