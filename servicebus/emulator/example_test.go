package emulator_test

import (
	"context"
	"fmt"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"azsqloutbox/servicebus/emulator"
)

// A test starts a server, scripts what goes wrong, lets the code under test
// send with the real library, and looks inside.
func Example() {
	server, err := emulator.Start(emulator.Config{Entities: []emulator.Entity{{Name: "orders"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	busy := server.Inject(emulator.Fault{Kind: emulator.ServerBusy, Entity: "orders"})

	client, err := azservicebus.NewClientFromConnectionString(server.ConnectionString(), &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{RetryDelay: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	sender, err := client.NewSender("orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = sender.SendMessage(context.Background(), &azservicebus.Message{Body: []byte("hello")}, nil)
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println("throttled", busy.Fired(), "time")
	for _, m := range server.Messages("orders") {
		fmt.Printf("%d: %s\n", m.SequenceNumber, m.Body)
	}
	// Output:
	// throttled 1 time
	// 1: hello
}
