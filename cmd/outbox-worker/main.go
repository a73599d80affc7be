// outbox-worker takes events from an Azure SQL outbox table to Azure Service
// Bus until it is told to stop.
package main

import "azsqloutbox/cmd/outbox-worker/program"

func main() { program.Main() }
