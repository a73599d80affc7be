package sizing_test

import (
	"fmt"
	"time"

	"azsqloutbox/maintenance/sizing"
)

// Three million events a day, ten times as many at the peak, kept for three days.
func ExampleSize() {
	p, err := sizing.Size(sizing.Workload{
		EventsPerSecond:        350,
		AverageEventsPerSecond: 35,
		PayloadBytes:           600,
		Retention:              72 * time.Hour,
		Tier:                   sizing.BusinessCritical,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, %.2f MB/s of log, %.1f GB, Service Bus %s, %d replicas\n",
		p.Objective, p.LogMBPerSecond, p.StorageGB, p.ServiceBusTier, p.Replicas)
	// Output: BC_Gen5_2, 1.14 MB/s of log, 10.2 GB, Service Bus Standard, 2 replicas
}
