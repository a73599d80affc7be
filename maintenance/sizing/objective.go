package sizing

import (
	"regexp"
	"strconv"
	"strings"
)

// Tier is a service tier of Azure SQL.
type Tier string

// The tiers of the vCore model.
const (
	GeneralPurpose   Tier = "General Purpose"
	BusinessCritical Tier = "Business Critical"
	Hyperscale       Tier = "Hyperscale"
)

// Objective is a service objective of the vCore model: GP_Gen5_8, GP_S_Gen5_2,
// BC_Gen5_8, HS_Gen5_4.
type Objective struct {
	Name       string
	Tier       Tier
	Serverless bool
	VCores     int
}

var objectiveName = regexp.MustCompile(`^(GP|BC|HS)_(S_)?([A-Za-z0-9]+)_([0-9]+)$`)

// ParseObjective reads the name of a single database's service objective. ok is
// false for those of the DTU model, elastic pools and hardware whose limits are
// not the ones below: memory per vCore is Gen5's and the premium series'.
func ParseObjective(name string) (o Objective, ok bool) {
	m := objectiveName.FindStringSubmatch(strings.TrimSpace(name))
	if m == nil {
		return Objective{}, false
	}
	cores, err := strconv.Atoi(m[4])
	if err != nil || cores == 0 || !strings.EqualFold(m[3], "Gen5") {
		return Objective{}, false
	}
	tier := map[string]Tier{"GP": GeneralPurpose, "BC": BusinessCritical, "HS": Hyperscale}[m[1]]
	return Objective{Name: name, Tier: tier, Serverless: m[2] != "", VCores: cores}, true
}

// Limits per vCore (azure-docs, resource-limits-vcore-single-databases.md, copy
// of 07/2024): Gen5 has 5.19 GB of memory a vCore, 41.5 GB with 8; serverless 3.
const (
	memoryPerCore           = 5.19 * GB
	memoryPerServerlessCore = 3.0 * GB
)

// MemoryBytes is the memory of the objective. The buffer pool is smaller: plan
// cache, locks and, on Business Critical, In-Memory OLTP come out of it.
func (o Objective) MemoryBytes() float64 {
	if o.Serverless {
		return memoryPerServerlessCore * float64(o.VCores)
	}
	return memoryPerCore * float64(o.VCores)
}

// LogBytesPerSecond is the log-rate limit; LOG_RATE_GOVERNOR waits begin there.
func (o Objective) LogBytesPerSecond() float64 {
	switch o.Tier {
	case BusinessCritical:
		return min(12*float64(o.VCores), 96) * MB
	case Hyperscale:
		return 100 * MB
	default:
		return min(4.5*float64(o.VCores), 50) * MB
	}
}

// InMemoryBytes is the share of memory that Business Critical keeps for
// In-Memory OLTP, known for the sizes that the page lists; 0 elsewhere.
func (o Objective) InMemoryBytes() float64 {
	if o.Tier != BusinessCritical {
		return 0
	}
	return map[int]float64{2: 1.57, 4: 3.14, 6: 4.71, 8: 6.28, 10: 8.65, 12: 11.02, 14: 13.39, 16: 15.77, 18: 18.14, 20: 20.51, 24: 25.25, 32: 37.94, 40: 52.23, 80: 131.64}[o.VCores] * GB
}

// InstanceLogBytesPerSecond is the log-rate limit of a whole Managed Instance by
// its tier (azure-docs, managed-instance/resource-limits.md, copy of 06/2022):
// General Purpose 3 MB/s a vCore, at most 120; Business Critical 4, at most 96.
func InstanceLogBytesPerSecond(tier string, vCores int) float64 {
	if Tier(tier) == BusinessCritical {
		return min(4*float64(vCores), 96) * MB
	}
	return min(3*float64(vCores), 120) * MB
}
