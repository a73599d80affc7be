package infra

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// compose is as much of infra/compose.yaml as there is: a name that is not here is
// an error.
type compose struct {
	Name     string
	Services map[string]struct {
		Image       string
		Environment map[string]string
		Ports       []string
		Volumes     []string
		Command     []string
		Init        bool
		Healthcheck *struct {
			Test              []string
			Interval, Timeout string
			Retries           int
			StartPeriod       string `yaml:"start_period"`
		}
		DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	}
}

func composeFile(t *testing.T) compose {
	t.Helper()
	var c compose
	if err := yaml.UnmarshalWithOptions([]byte(source(t, "compose.yaml")), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComposePinsAndChecks(t *testing.T) {
	c := composeFile(t)
	version := regexp.MustCompile(`^[a-z0-9./-]+:\d{4}-CU\d+-ubuntu-\d\d\.\d\d$|^[a-z0-9./-]+:\d+\.\d+\.\d+$`)
	for name, service := range c.Services {
		if !version.MatchString(service.Image) {
			t.Errorf("%s: the image %s has no exact version", name, service.Image)
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, port)
			}
		}
		for other, on := range service.DependsOn {
			if on.Condition == "service_healthy" && c.Services[other].Healthcheck == nil {
				t.Errorf("%s waits for the health of %s, which has no check", name, other)
			}
		}
		// Two of the three check themselves; the emulator's image holds nothing to
		// check with, so that its neighbour must.
		if check := service.Healthcheck; check == nil {
			asked := false
			for _, other := range c.Services {
				asked = asked || other.Healthcheck != nil && strings.Contains(strings.Join(other.Healthcheck.Test, " "), "//"+name+":")
			}
			if !asked {
				t.Errorf("nobody checks the health of %s", name)
			}
		} else if _, err := time.ParseDuration(check.Interval); err != nil || check.Retries == 0 || !strings.HasPrefix(check.Test[0], "CMD") {
			t.Errorf("%s: health check %+v", name, check)
		}
		for setting, value := range service.Environment {
			if strings.Contains(setting, "PASSWORD") && !strings.HasPrefix(value, "${"+setting+":?") {
				t.Errorf("%s: %s is in the file", name, setting)
			}
		}
	}
	// What Microsoft's emulator and server ask for.
	for service, settings := range map[string][]string{
		"sql":        {"ACCEPT_EULA", "MSSQL_SA_PASSWORD"},
		"servicebus": {"ACCEPT_EULA", "MSSQL_SA_PASSWORD", "SQL_SERVER"},
	} {
		for _, setting := range settings {
			if c.Services[service].Environment[setting] == "" {
				t.Errorf("%s has no %s", service, setting)
			}
		}
	}
	bus := c.Services["servicebus"]
	if _, ok := c.Services[bus.Environment["SQL_SERVER"]]; !ok {
		t.Errorf("the emulator's database %q is no service", bus.Environment["SQL_SERVER"])
	}
	if want := "./servicebus-emulator.json:/ServiceBus_Emulator/ConfigFiles/Config.json:ro"; !slices.Equal(bus.Volumes, []string{want}) {
		t.Errorf("the emulator's volumes are %v, want %s", bus.Volumes, want)
	}
}

// emulatorConfig has the names of the emulator's Config-schema.json that are used
// here (repository Azure/azure-service-bus-emulator-installer).
type emulatorConfig struct {
	UserConfig struct {
		Namespaces []struct {
			Name   string
			Queues []struct {
				Name       string
				Properties struct {
					DeadLetteringOnMessageExpiration, RequiresDuplicateDetection, RequiresSession bool
					DefaultMessageTimeToLive, DuplicateDetectionHistoryTimeWindow, LockDuration   string
					MaxDeliveryCount                                                              int
				}
			}
			Topics []struct{}
		}
		Logging struct{ Type string }
	}
}

func TestTheEmulatorsQueuesKeepItsLimits(t *testing.T) {
	var c emulatorConfig
	decoder := json.NewDecoder(strings.NewReader(source(t, "servicebus-emulator.json")))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	namespaces := c.UserConfig.Namespaces
	if len(namespaces) != 1 || namespaces[0].Name != "sbemulatorns" || namespaces[0].Topics == nil {
		t.Fatalf("namespaces %+v, want one of the only name it may have, with queues and topics", namespaces)
	}
	script := source(t, "test-real.sh")
	within := func(name, what, period string, least, most time.Duration) {
		if d := duration(t, period); d < least || d > most {
			t.Errorf("%s: %s is %s, and may be %s to %s", name, what, period, least, most)
		}
	}
	for _, q := range namespaces[0].Queues {
		within(q.Name, "DefaultMessageTimeToLive", q.Properties.DefaultMessageTimeToLive, 5*time.Minute, time.Hour)
		within(q.Name, "LockDuration", q.Properties.LockDuration, 5*time.Second, 5*time.Minute)
		if q.Properties.RequiresDuplicateDetection {
			// At least a minute is what the suite asks of the queue.
			within(q.Name, "DuplicateDetectionHistoryTimeWindow", q.Properties.DuplicateDetectionHistoryTimeWindow, time.Minute, 5*time.Minute)
		}
		if n := q.Properties.MaxDeliveryCount; n < 1 || n > 10 {
			t.Errorf("%s: MaxDeliveryCount is %d, and may be 1 to 10", q.Name, n)
		}
		// The suite with duplicate detection is given the queue that has it.
		variable := map[bool]string{false: "OUTBOX_TEST_SERVICEBUS_ENTITY", true: "OUTBOX_TEST_SERVICEBUS_DUPLICATES"}[q.Properties.RequiresDuplicateDetection]
		if !regexp.MustCompile(variable + "=" + regexp.QuoteMeta(q.Name) + `(\s|$)`).MatchString(script) {
			t.Errorf("test-real.sh does not give %s as %s", q.Name, variable)
		}
	}
	if len(namespaces[0].Queues) != 2 {
		t.Errorf("%d queues, want the 2 of test-real.sh", len(namespaces[0].Queues))
	}
}

// duration reads a period of ISO 8601 as far as hours, minutes and seconds.
func duration(t *testing.T, period string) time.Duration {
	t.Helper()
	clock, ok := strings.CutPrefix(period, "PT")
	d, err := time.ParseDuration(strings.ToLower(clock))
	if !ok || err != nil {
		t.Fatalf("%q is no period like PT1H", period)
	}
	return d
}
