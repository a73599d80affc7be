package infra

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"azsqloutbox/servicebus"
	"azsqloutbox/sqlserver"
)

// manifest is one document of infra/kubernetes.
type manifest map[string]any

// manifests are the documents of the base by kind and name.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	base := kustomization(t)
	all := map[string]manifest{}
	for _, file := range base.Resources {
		for document := range strings.SplitSeq(source(t, "kubernetes/"+file), "\n---\n") {
			var m manifest
			if err := yaml.Unmarshal([]byte(document), &m); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all[fmt.Sprintf("%s %s", m["kind"], m.at("metadata", "name"))] = m
		}
	}
	return all
}

// base is as much of a Kustomization as there is.
type base struct {
	APIVersion, Kind   string
	Labels             []any
	Resources          []string
	ConfigMapGenerator []struct {
		Name     string
		Literals []string
	} `yaml:"configMapGenerator"`
}

func kustomization(t *testing.T) base {
	t.Helper()
	var b base
	text := strings.Replace(source(t, "kubernetes/kustomization.yaml"), "apiVersion:", "apiversion:", 1)
	if err := yaml.UnmarshalWithOptions([]byte(text), &b, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return b
}

// at is what lies under these names; a number is a place in a list.
func (m manifest) at(names ...any) any {
	var v any = map[string]any(m)
	for _, name := range names {
		switch in := v.(type) {
		case map[string]any:
			key, _ := name.(string)
			v = in[key]
		case []any:
			i, _ := name.(int)
			if i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// TestTheManifestsAreOfTheKindsTypes compares every path that a manifest sets with
// kubernetes/types.tsv: the name exists, and the value is of its type.
func TestTheManifestsAreOfTheKindsTypes(t *testing.T) {
	types := map[string]string{}
	for _, row := range rows(t, "kubernetes/types.tsv", 3) {
		types[row[0]+" "+row[1]] = row[2]
	}
	used := map[string]bool{}
	for name, m := range manifests(t) {
		kind := fmt.Sprintf("%s %s", m["apiVersion"], m["kind"])
		var look func(path string, value any)
		look = func(path string, value any) {
			want, ok := types[kind+" "+path]
			if used[kind+" "+path] = true; path != "" && (!ok || !isOf(want, value)) {
				t.Errorf("%s: %s is %T %v, and the table has %q", name, path, value, value, want)
			}
			switch value := value.(type) {
			case map[string]any:
				for key, inner := range value {
					if want == "map" {
						key = "*"
					}
					look(strings.TrimPrefix(path+"."+key, "."), inner)
				}
			case []any:
				for _, inner := range value {
					look(path+"[]", inner)
				}
			}
		}
		look("", map[string]any(m))
	}
	for path := range types {
		if !used[path] {
			t.Errorf("the table has %s, which no manifest sets", path)
		}
	}
}

// isOf is whether a value is of a type of the table.
func isOf(want string, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return want == "object" || want == "map"
	case []any:
		return want == "array"
	case bool:
		return want == "boolean"
	case uint64, int64:
		return want == "integer" || want == "integer|string" || want == "quantity"
	case string:
		if strings.Contains(want, "|") && want != "integer|string" {
			return slices.Contains(strings.Split(want, "|"), value)
		}
		return want == "string" || want == "integer|string" || want == "quantity" && regexp.MustCompile(`^\d+(m|Mi|Gi)?$`).MatchString(value)
	default:
		return false
	}
}

// settings are the variables of a ConfigMap of the base.
func (b base) settings(t *testing.T, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, generator := range b.ConfigMapGenerator {
		if generator.Name == name {
			for _, literal := range generator.Literals {
				key, value, _ := strings.Cut(literal, "=")
				found[key] = value
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no ConfigMap %s", name)
	}
	return found
}

func TestTheManifestsSettings(t *testing.T) {
	b, all := kustomization(t), manifests(t)
	database, worker := b.settings(t, "outbox-database"), b.settings(t, "outbox-worker")
	given := maps.Clone(database)
	maps.Copy(given, worker)
	takes(t, given)
	if err := sqlserver.CheckDSN(database["OUTBOX_SQL_DSN"]); err != nil {
		t.Error(err)
	}
	// KEDA opens the DSN with the bare driver, whose default is not to encrypt.
	if dsn, err := url.Parse(database["OUTBOX_SQL_DSN"]); err != nil || dsn.Query().Get("encrypt") != "true" {
		t.Errorf("the DSN does not say encrypt=true: %v", err)
	}
	if worker["OUTBOX_SERVICEBUS_CREDENTIAL"] != servicebus.CredentialWorkloadIdentity {
		t.Errorf("the credential is %s", worker["OUTBOX_SERVICEBUS_CREDENTIAL"])
	}
	// What is read by a manifest is made by the base.
	for name, m := range all {
		for _, ref := range regexp.MustCompile(`configMapRef:map\[name:([\w-]+)\]`).FindAllStringSubmatch(fmt.Sprint(m), -1) {
			b.settings(t, ref[1])
		}
		for _, account := range regexp.MustCompile(`serviceAccountName:([\w-]+)`).FindAllStringSubmatch(fmt.Sprint(m), -1) {
			if all["ServiceAccount "+account[1]] == nil {
				t.Errorf("%s: there is no service account %s", name, account[1])
			}
		}
	}
}

// TestThePodsAreBounded: nobody's root, nothing to write to, a bound for the memory,
// and the identity of the platform.
func TestThePodsAreBounded(t *testing.T) {
	all := manifests(t)
	pods := 0
	for name, m := range all {
		var template manifest
		switch m["kind"] {
		case "Deployment":
			template = manifest(m.at("spec", "template").(map[string]any))
		case "CronJob":
			template = manifest(m.at("spec", "jobTemplate", "spec", "template").(map[string]any))
		default:
			continue
		}
		pods++
		for path, want := range map[[6]any]any{
			{"spec", "securityContext", "runAsNonRoot"}:                              true,
			{"spec", "securityContext", "runAsUser"}:                                 uint64(65532), // as the Dockerfile
			{"spec", "securityContext", "seccompProfile", "type"}:                    "RuntimeDefault",
			{"spec", "automountServiceAccountToken"}:                                 false,
			{"spec", "containers", 0, "securityContext", "allowPrivilegeEscalation"}: false,
			{"spec", "containers", 0, "securityContext", "readOnlyRootFilesystem"}:   true,
			{"spec", "containers", 0, "securityContext", "capabilities", "drop"}:     []any{"ALL"},
			{"spec", "containers", 0, "resources", "limits", "memory"}:               "256Mi",
			{"spec", "containers", 0, "image"}:                                       "outbox",
			{"metadata", "labels", "azure.workload.identity/use"}:                    "true",
			{"metadata", "labels", "app.kubernetes.io/name"}:                         m.at("metadata", "name"),
		} {
			names := slices.DeleteFunc(path[:], func(n any) bool { return n == nil })
			if diff := cmp.Diff(want, template.at(names...)); diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, names, diff)
			}
		}
	}
	if pods != 3 {
		t.Errorf("%d kinds of pods, want the worker's and two jobs'", pods)
	}

	worker := all["Deployment outbox-worker"]
	grace, err := time.ParseDuration(kustomization(t).settings(t, "outbox-worker")["OUTBOX_GRACE"])
	if err != nil {
		t.Fatal(err)
	}
	if kill, _ := worker.at("spec", "template", "spec", "terminationGracePeriodSeconds").(uint64); time.Duration(kill)*time.Second < grace+5*time.Second {
		t.Errorf("the pod is killed after %d s, and the worker may take %s to stop", kill, grace)
	}
	container := manifest(worker.at("spec", "template", "spec", "containers", 0).(map[string]any))
	for probe, path := range map[string]string{"livenessProbe": "/livez", "readinessProbe": "/readyz"} {
		if got := container.at(probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks %v, want %s", probe, got, path)
		}
	}
	// The budget is for these pods, and lets a drain go on while none of them is ready.
	budget := all["PodDisruptionBudget outbox-worker"]
	if diff := cmp.Diff(worker.at("spec", "selector", "matchLabels"), budget.at("spec", "selector", "matchLabels")); diff != "" {
		t.Errorf("the budget's pods (-Deployment +budget):\n%s", diff)
	}
	if budget.at("spec", "unhealthyPodEvictionPolicy") != "AlwaysAllow" || budget.at("spec", "maxUnavailable") != uint64(1) {
		t.Errorf("the budget is %v", budget["spec"])
	}
	for label, value := range worker.at("spec", "selector", "matchLabels").(map[string]any) {
		if got := worker.at("spec", "template", "metadata", "labels", label); got != value {
			t.Errorf("the selector wants %s to be %v, and the pods have %v", label, value, got)
		}
	}
}

// TestTheJobsAreThoseOfContainerApps: the same commands at the same time, within
// what their pods may take.
func TestTheJobsAreThoseOfContainerApps(t *testing.T) {
	timeouts, main := source(t, "modules/jobs.bicep"), source(t, "main.bicep")
	for _, name := range []string{"purge", "rebuild"} {
		wantArgs, wantEnv := container(t, "jobs", name)
		maps.DeleteFunc(wantEnv, func(name, _ string) bool {
			return name == "OUTBOX_SQL_DSN" || name == "OUTBOX_SCHEMA" || name == "OUTBOX_TABLE"
		})
		job := manifests(t)["CronJob outbox-"+name]
		pod := manifest(job.at("spec", "jobTemplate", "spec", "template", "spec", "containers", 0).(map[string]any))
		var args []string
		for _, arg := range pod["args"].([]any) {
			args = append(args, arg.(string))
		}
		if diff := cmp.Diff(wantArgs, args); diff != "" {
			t.Errorf("%s: arguments (-Container Apps +here):\n%s", name, diff)
		}
		env := map[string]string{}
		for i := 0; pod.at("env", i) != nil; i++ {
			env[pod.at("env", i, "name").(string)] = pod.at("env", i, "value").(string)
		}
		if diff := cmp.Diff(wantEnv, env); diff != "" {
			t.Errorf("%s: settings (-Container Apps +here):\n%s", name, diff)
		}
		if command := pod.at("command", 0); command != "/usr/local/bin/outboxctl" {
			t.Errorf("%s: the command is %v", name, command)
		}
		if schedule := fmt.Sprintf("param %sSchedule string = '%s'\n", name, job.at("spec", "schedule")); !strings.Contains(main, schedule) {
			t.Errorf("%s: main.bicep has no %s", name, schedule)
		}
		if job.at("spec", "concurrencyPolicy") != "Forbid" || job.at("spec", "jobTemplate", "spec", "backoffLimit") != uint64(0) {
			t.Errorf("%s: two could run at once", name)
		}
		if deadline := job.at("spec", "jobTemplate", "spec", "activeDeadlineSeconds"); !strings.Contains(timeouts, fmt.Sprintf("replicaTimeout: %d\n", deadline)) {
			t.Errorf("%s: the deadline of %d s is not that of jobs.bicep", name, deadline)
		}
	}
}

func TestTheScaledObject(t *testing.T) {
	all := manifests(t)
	scaled := all["ScaledObject outbox-worker"]
	if target := scaled.at("spec", "scaleTargetRef", "name"); all[fmt.Sprintf("Deployment %v", target)] == nil {
		t.Errorf("it scales %v, which is not there", target)
	}
	if all["Deployment outbox-worker"].at("spec", "replicas") != nil {
		t.Error("the Deployment and the ScaledObject both set the replicas")
	}
	if least, _ := scaled.at("spec", "minReplicaCount").(uint64); least == 0 {
		t.Error("without a worker nothing is reaped or retried")
	}
	trigger := manifest(scaled.at("spec", "triggers", 0).(map[string]any))
	if trigger["type"] != "mssql" || all[fmt.Sprintf("TriggerAuthentication %v", trigger.at("authenticationRef", "name"))] == nil {
		t.Errorf("the trigger is %v", trigger)
	}
	metadata := trigger["metadata"].(map[string]any)
	if database := kustomization(t).settings(t, "outbox-database"); database[metadata["connectionStringFromEnv"].(string)] == "" {
		t.Errorf("the worker has no %v", metadata["connectionStringFromEnv"])
	}
	// The same statement as on Container Apps, whose test runs it.
	if diff := cmp.Diff(backlogQuery(t), metadata["query"]); diff != "" {
		t.Errorf("the query (-Container Apps +here):\n%s", diff)
	}
}

// TestTheBaseHasEveryFile: a file that the Kustomization does not name is not applied.
func TestTheBaseHasEveryFile(t *testing.T) {
	folder, err := os.ReadDir("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, file := range folder {
		if name := file.Name(); strings.HasSuffix(name, ".yaml") && name != "kustomization.yaml" {
			there = append(there, name)
		}
	}
	if diff := cmp.Diff(there, slices.Sorted(slices.Values(kustomization(t).Resources))); diff != "" {
		t.Error(diff)
	}
}
