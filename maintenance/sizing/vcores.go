package sizing

import "fmt"

// Utilization is how much of a limit is planned with; the rest is for what was not
// thought of. 70 % is where Microsoft advises to scale Service Bus up (azure-docs,
// service-bus-premium-messaging.md), and a fair share elsewhere.
const Utilization = 0.7

// sizes are the vCores of Gen5 in every tier (sql-docs,
// resource-limits-vcore-single-databases.md, copy of 11/2022).
var sizes = []int{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32, 40, 80}

// MaxDataBytes is the most a database of the objective may hold, by the same page.
func (o Objective) MaxDataBytes() float64 {
	switch {
	case o.Tier == Hyperscale:
		return 100 * 1024 * GB
	case o.VCores <= 4:
		return 1024 * GB
	case o.VCores <= 6:
		return 1536 * GB
	case o.VCores <= 10:
		return 2048 * GB
	case o.VCores <= 20:
		return 3072 * GB
	}
	return 4096 * GB
}

// bufferPoolBytes is what of the memory may hold pages of the outbox: plan cache
// and locks take a share of what In-Memory OLTP leaves.
func (o Objective) bufferPoolBytes() float64 {
	return (o.MemoryBytes() - o.InMemoryBytes()) * Utilization
}

// cpuPerEvent in seconds. The only figure from a real database is that of the Azure
// SQL article: 142 ms for the statement that took 50 times the CPU of a SELECT and
// an update of 100 rows, so 28 µs a row for claim and flip. Insert, settlement and
// purge are counted as three times that.
const cpuPerEvent = 4 * 0.142 / 50 / 100

// Factor is one of the things that decide about the vCores.
type Factor struct {
	Name string `json:"factor"`
	// Need and Limit are in Unit; Limit is that of the size that was chosen.
	Need  float64 `json:"need"`
	Limit float64 `json:"limit"`
	Unit  string  `json:"unit"`
	// VCores is the smallest size whose planned share of the limit is enough for
	// this factor alone; 0 where none is.
	VCores int `json:"vcores"`

	limit func(Objective) float64
}

// Names of the factors, and of the case in which none of them matters.
const (
	FactorLog      = "log_rate"
	FactorMemory   = "memory"
	FactorCPU      = "cpu"
	FactorStorage  = "storage"
	FactorSmallest = "smallest_size"
)

func (w Workload) factors() []Factor {
	return []Factor{
		{Name: FactorLog, Need: w.EventsPerSecond * w.logPerEvent() / MB, Unit: "MB/s", limit: func(o Objective) float64 { return o.LogBytesPerSecond() * Utilization / MB }},
		{Name: FactorMemory, Need: w.hotBytes() / GB, Unit: "GB", limit: func(o Objective) float64 { return o.bufferPoolBytes() / GB }},
		{Name: FactorCPU, Need: w.EventsPerSecond * cpuPerEvent, Unit: "vCores", limit: func(o Objective) float64 { return float64(o.VCores) * Utilization }},
		{Name: FactorStorage, Need: w.storageBytes() / GB, Unit: "GB", limit: func(o Objective) float64 { return o.MaxDataBytes() * Utilization / GB }},
	}
}

// smallest is the smallest size of a tier whose limit reaches need, and whether
// there is one; without one it is the first of those that have the highest limit.
func smallest(tier Tier, need float64, limit func(Objective) float64) (vCores int, ok bool) {
	best := 0.0
	for _, n := range sizes {
		l := limit(Objective{Tier: tier, VCores: n})
		if l >= need {
			return n, true
		}
		if l > best {
			best, vCores = l, n
		}
	}
	return vCores, false
}

// choose is the size that is enough for every factor, and what decided about it.
func (w Workload) choose() (o Objective, factors []Factor, limiting string, fits bool) {
	o, fits = Objective{Tier: w.Tier}, true
	factors = w.factors()
	for i := range factors {
		f := &factors[i]
		n, ok := smallest(w.Tier, f.Need, f.limit)
		if ok {
			f.VCores = n
		}
		fits = fits && ok
		o.VCores = max(o.VCores, n)
	}
	o.Name = fmt.Sprintf("%s_Gen5_%d", map[Tier]string{GeneralPurpose: "GP", BusinessCritical: "BC", Hyperscale: "HS"}[o.Tier], o.VCores)
	nearest := 0.0
	for i := range factors {
		f := &factors[i]
		f.Limit = f.limit(o)
		if share := f.Need / f.Limit; share > nearest {
			nearest, limiting = share, f.Name
		}
	}
	if fits && o.VCores == sizes[0] {
		limiting = FactorSmallest
	}
	return o, factors, limiting, fits
}
