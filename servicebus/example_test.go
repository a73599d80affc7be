package servicebus_test

import (
	"fmt"
	"time"

	"azsqloutbox/servicebus"
)

func ExampleParseRoutes() {
	routes, err := servicebus.ParseRoutes([]byte(`
routes:
  - event-type: OrderPlaced
    entity: orders
    session-id-from-aggregate: true
default:
  entity: events
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := servicebus.NewRoutes(routes...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, eventType := range []string{"OrderPlaced", "InvoicePaid"} {
		route, _ := table.Lookup(eventType)
		fmt.Println(eventType, "goes to", route.Entity)
	}
	// Output:
	// OrderPlaced goes to orders
	// InvoicePaid goes to events
}

func ExampleMessageID() {
	fmt.Println(servicebus.MessageID("shop.dbo.outbox_event", 4711, time.UnixMilli(1767323045678)))
	// Output: shop.dbo.outbox_event:4711:1767323045678
}
