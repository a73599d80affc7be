package emulator_test

import (
	"os/exec"
	"testing"
)

// TestProton has an independent AMQP implementation use the emulator.
func TestProton(t *testing.T) {
	const python = "/usr/bin/python3" // the one that distribution packages belong to
	if err := exec.Command(python, "-c", "import proton").Run(); err != nil {
		t.Skipf("%s has no module proton (Debian: python3-qpid-proton): %v", python, err)
	}
	server := start(t, queues("q"))
	out, err := exec.CommandContext(within(t), python, "testdata/exchange_with_proton.py", server.Addr(), "SAS_KEY_VALUE").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if c := server.Counts("q"); c.Active != 2 || c.DeadLettered != 0 {
		t.Errorf("counts are %+v, want the two messages that were sent last", c)
	}
}
