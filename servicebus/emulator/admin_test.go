package emulator_test

import (
	"crypto/tls"
	"errors"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"azsqloutbox/servicebus/emulator"
)

// plainHTTP sends what the admin client wants to send by https, which it does
// whatever the connection string says of an emulator, by http.
type plainHTTP struct{}

func (plainHTTP) Do(q *http.Request) (*http.Response, error) {
	q.URL.Scheme = "http"
	return http.DefaultTransport.RoundTrip(q)
}

func adminOptions(transport policy.Transporter) *admin.ClientOptions {
	return &admin.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: transport, Retry: policy.RetryOptions{MaxRetries: -1},
	}}
}

func administer(t *testing.T, connectionString string) *admin.Client {
	t.Helper()
	client, err := admin.NewClientFromConnectionString(connectionString, adminOptions(plainHTTP{}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAdminReadsAQueue(t *testing.T) {
	server := start(t, emulator.Config{Entities: []emulator.Entity{{
		Name: "Orders", LockDuration: 30 * time.Second, MaxDeliveryCount: 7, DefaultTTL: 14 * 24 * time.Hour,
		DeadLetterOnExpiration: true, DuplicateDetection: true, DuplicateWindow: time.Hour, MaxSizeBytes: 2 << 30,
	}, {Name: "plain", RequiresSession: true, Partitioned: true}}})
	client := administer(t, server.ConnectionString())
	got, err := client.GetQueue(within(t), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if *got.LockDuration != "PT30S" || *got.MaxDeliveryCount != 7 || *got.DefaultMessageTimeToLive != "P14D" ||
		!*got.DeadLetteringOnMessageExpiration || !*got.RequiresDuplicateDetection ||
		*got.DuplicateDetectionHistoryTimeWindow != "PT1H" || *got.MaxSizeInMegabytes != 2048 ||
		*got.MaxMessageSizeInKilobytes != 256 || *got.RequiresSession || *got.EnablePartitioning {
		t.Errorf("the queue is described by %+v", got.QueueProperties)
	}
	if got, err = client.GetQueue(within(t), "plain", nil); err != nil {
		t.Fatal(err)
	}
	if !*got.RequiresSession || !*got.EnablePartitioning || *got.RequiresDuplicateDetection ||
		!strings.HasPrefix(*got.DefaultMessageTimeToLive, "P10675199D") {
		t.Errorf("the queue with sessions is described by %+v", got.QueueProperties)
	}
	if *got.Status != admin.EntityStatusActive {
		t.Errorf("status %s", *got.Status)
	}
	server.SetStatus("plain", emulator.StatusSendDisabled)
	server.SetMaxSizeBytes("plain", 5<<30)
	if got, err = client.GetQueue(within(t), "plain", nil); err != nil {
		t.Fatal(err)
	}
	if *got.Status != admin.EntityStatusSendDisabled || *got.MaxSizeInMegabytes != 5120 {
		t.Errorf("status %s, %d MB; want what was set last", *got.Status, *got.MaxSizeInMegabytes)
	}
}

func TestAdminCountsWhatAQueueHolds(t *testing.T) {
	server := start(t, queues("q"))
	client := connect(t, server)
	s := sender(t, client, "q")
	send(t, s, numbered(4)...)
	if _, err := s.ScheduleMessages(within(t), numbered(2), time.Now().Add(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	r := receiver(t, client, "q", nil)
	if err := r.DeadLetterMessage(within(t), receive(t, r, 1)[0], nil); err != nil {
		t.Fatal(err)
	}
	got, err := administer(t, server.ConnectionString()).GetQueueRuntimeProperties(within(t), "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.ActiveMessageCount != 3 || got.DeadLetterMessageCount != 1 || got.ScheduledMessageCount != 2 ||
		got.TotalMessageCount != 6 || got.SizeInBytes <= 0 || got.CreatedAt.IsZero() {
		t.Errorf("runtime properties are %+v", got.QueueRuntimeProperties)
	}
}

func topicWithRules() emulator.Config {
	return emulator.Config{Tier: emulator.Premium, Entities: []emulator.Entity{
		{Name: "q"},
		{
			Name: "t", Kind: emulator.Topic, DuplicateDetection: true, MaxMessageBytes: 4 << 20,
			Subscriptions: []emulator.Subscription{
				{Name: "all", LockDuration: 2 * time.Minute},
				{Name: "some", RequiresSession: true, Rules: []emulator.Rule{
					{Name: "eu", Subject: "created", Properties: map[string]any{"region": "eu", "n": int64(5)}},
					{Name: "never", SQL: "1=0"},
				}},
			},
		},
	}}
}

func TestAdminReadsATopicAndItsSubscriptions(t *testing.T) {
	server := start(t, topicWithRules())
	client := administer(t, server.ConnectionString())
	m := message("a", "x")
	m.SessionID = to.Ptr("s")
	send(t, sender(t, connect(t, server), "t"), m)

	topic, err := client.GetTopic(within(t), "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !*topic.RequiresDuplicateDetection || *topic.DuplicateDetectionHistoryTimeWindow != "PT10M" ||
		*topic.MaxMessageSizeInKilobytes != 4096 || *topic.Status != admin.EntityStatusActive {
		t.Errorf("the topic is described by %+v", topic.TopicProperties)
	}
	running, err := client.GetTopicRuntimeProperties(within(t), "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	if running.SubscriptionCount != 2 || running.SQLFilterCount != 2 || running.CorrelationFilterCount != 1 || running.SizeInBytes <= 0 {
		t.Errorf("the topic's runtime properties are %+v", running.TopicRuntimeProperties)
	}
	subscription, err := client.GetSubscription(within(t), "t", "some", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !*subscription.RequiresSession || *subscription.LockDuration != "PT1M" {
		t.Errorf("the subscription is described by %+v", subscription.SubscriptionProperties)
	}
	for name, want := range map[string]int32{"all": 1, "some": 0} {
		got, err := client.GetSubscriptionRuntimeProperties(within(t), "t", name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.ActiveMessageCount != want || got.TotalMessageCount != int64(want) {
			t.Errorf("subscription %s has runtime properties %+v", name, got.SubscriptionRuntimeProperties)
		}
	}
	rule, err := client.GetRule(within(t), "t", "some", "eu", nil)
	if err != nil {
		t.Fatal(err)
	}
	filter, ok := rule.Filter.(*admin.CorrelationFilter)
	if !ok || *filter.Subject != "created" || filter.ApplicationProperties["region"] != "eu" || filter.ApplicationProperties["n"] != int64(5) {
		t.Errorf("the rule's filter is %+v", rule.Filter)
	}
	if rule, err = client.GetRule(within(t), "t", "all", "$Default", nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := rule.Filter.(*admin.TrueFilter); !ok {
		t.Errorf("the default rule's filter is %T", rule.Filter)
	}
}

func TestAdminListsPageByPage(t *testing.T) {
	server := start(t, topicWithRules())
	client := administer(t, server.ConnectionString())
	var names []string
	topics := client.NewListTopicsPager(nil)
	for topics.More() {
		p, err := topics.NextPage(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range p.Topics {
			names = append(names, item.TopicName)
		}
	}
	subscriptions := client.NewListSubscriptionsPager("t", &admin.ListSubscriptionsOptions{MaxPageSize: 1})
	for subscriptions.More() {
		p, err := subscriptions.NextPage(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Subscriptions) > 1 {
			t.Errorf("a page of %d, at most 1 was wanted", len(p.Subscriptions))
		}
		for _, item := range p.Subscriptions {
			names = append(names, item.SubscriptionName)
		}
	}
	rules := client.NewListRulesPager("t", "some", nil)
	for rules.More() {
		p, err := rules.NextPage(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range p.Rules {
			names = append(names, item.Name)
		}
	}
	if got := strings.Join(names, " "); got != "t all some eu never" {
		t.Errorf("listed: %s", got)
	}
}

func TestAdminReadsTheNamespace(t *testing.T) {
	for tier, units := range map[emulator.Tier]int64{emulator.Standard: 0, emulator.Premium: 1} {
		cfg := queues("q")
		cfg.Tier = tier
		got, err := administer(t, start(t, cfg).ConnectionString()).GetNamespaceProperties(within(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.SKU != tier.String() || (got.MessagingUnits == nil) != (units == 0) || got.CreatedTime.IsZero() {
			t.Errorf("tier %s: %+v", tier, got.NamespaceProperties)
		}
	}
}

func TestAdminFindsNothingWhereThereIsNothing(t *testing.T) {
	server := start(t, topicWithRules())
	client := administer(t, server.ConnectionString())
	if got, err := client.GetQueue(within(t), "nowhere", nil); err != nil || got != nil {
		t.Errorf("an unknown queue: %v, %v", got, err)
	}
	if got, err := client.GetSubscription(within(t), "t", "nowhere", nil); err != nil || got != nil {
		t.Errorf("an unknown subscription: %v, %v", got, err)
	}
	if got, err := client.GetSubscription(within(t), "q", "all", nil); err != nil || got != nil {
		t.Errorf("a queue's subscription: %v, %v", got, err)
	}
	if got, err := client.GetRule(within(t), "t", "all", "nowhere", nil); err != nil || got != nil {
		t.Errorf("an unknown rule: %v, %v", got, err)
	}
}

func wantStatus(t *testing.T, err error, want int) {
	t.Helper()
	var e *azcore.ResponseError
	if !errors.As(err, &e) || e.StatusCode != want {
		t.Errorf("%v, want status %d", err, want)
	}
}

func TestAdminNeedsTheRightToManage(t *testing.T) {
	cfg := queues("q")
	cfg.Policies = []emulator.Policy{{Name: "worker", Key: "k", Rights: emulator.RightSend | emulator.RightListen}}
	server := start(t, cfg)
	for who, text := range map[string]string{
		"a policy without Manage": server.PolicyConnectionString("worker"),
		"a wrong key":             strings.Replace(server.ConnectionString(), "SAS_KEY_VALUE", "guessed", 1),
		"an unknown policy":       strings.Replace(server.ConnectionString(), "RootManage", "Root", 1),
	} {
		_, err := administer(t, text).GetQueue(within(t), "q", nil)
		t.Log(who)
		wantStatus(t, err, http.StatusUnauthorized)
		// Not even that an entity is not there is told.
		_, err = administer(t, text).GetQueue(within(t), "nowhere", nil)
		wantStatus(t, err, http.StatusUnauthorized)
	}
}

func TestAdminNeedsAGoodEntraToken(t *testing.T) {
	server := start(t, queues("q"))
	for token, want := range map[string]int{
		emulator.EntraToken(time.Now().Add(time.Hour)):  http.StatusOK,
		emulator.EntraToken(time.Now().Add(-time.Hour)): http.StatusUnauthorized,
		"x": http.StatusUnauthorized,
	} {
		q, err := http.NewRequest(http.MethodGet, "http://"+server.Addr()+"/q?api-version=2021-05", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("token %s: %s, want status %d", token, answer.Status, want)
		}
	}
}

func TestAdminChangesNothing(t *testing.T) {
	server := start(t, queues("q"))
	client := administer(t, server.ConnectionString())
	_, err := client.CreateQueue(within(t), "new", nil)
	wantStatus(t, err, http.StatusNotImplemented)
	_, err = client.DeleteQueue(within(t), "q", nil)
	wantStatus(t, err, http.StatusNotImplemented)
	send(t, sender(t, connect(t, server), "q"), message("a", "x"))
}

func TestAdminStatusIsScripted(t *testing.T) {
	server := start(t, queues("q"))
	client := administer(t, server.ConnectionString())
	for _, status := range []int{401, 403, 408, 500, 503} {
		fault := server.Inject(emulator.Fault{Kind: emulator.AdminStatus, Entity: "q", Status: status})
		_, err := client.GetQueue(within(t), "q", nil)
		wantStatus(t, err, status)
		if fault.Fired() != 1 {
			t.Errorf("status %d fired %d times", status, fault.Fired())
		}
		fault.Remove()
	}
	if _, err := client.GetQueue(within(t), "q", nil); err != nil {
		t.Error(err)
	}
}

func TestAdminOverTLS(t *testing.T) {
	cfg := queues("q")
	var trust *tls.Config
	cfg.TLS, trust = certificate(t)
	cfg.EntraRights = emulator.RightSend
	server := start(t, cfg)
	transport := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	client, err := admin.NewClientFromConnectionString(server.ConnectionString(), adminOptions(transport))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetQueue(within(t), "q", nil); err != nil {
		t.Errorf("with the root policy: %v", err)
	}
	// The role Data Sender cannot look, as on the service.
	if client, err = admin.NewClient(server.Addr(), credential{}, adminOptions(transport)); err != nil {
		t.Fatal(err)
	}
	_, err = client.GetQueue(within(t), "q", nil)
	wantStatus(t, err, http.StatusUnauthorized)
}

// Other clients than Go's take names from the ids of entries.
func TestAdminEntriesHaveTheirOwnAddress(t *testing.T) {
	server := start(t, topicWithRules())
	for target, id := range map[string]string{
		"$Resources/Topics?":                 "t",
		"t/subscriptions?":                   "t/Subscriptions/some",
		"T/subscriptions/SOME/rules?$skip=1": "t/Subscriptions/some/Rules/never",
	} {
		body := adminGet(t, server, target+"&api-version=2021-05")
		if want := "<id>https://" + server.Addr() + "/" + id + "?api-version=2021-05</id>"; !strings.Contains(body, want) {
			t.Errorf("%s has no %s: %s", target, want, body)
		}
		if strings.Contains(body, "SqlFilterCount") {
			t.Errorf("%s counts filters, which version 2021-05 does not", target)
		}
	}
}

// @azure/service-bus goes on where the feed says; azservicebus counts.
func TestAdminFeedsSayWhereTheNextPageIs(t *testing.T) {
	server := start(t, queues("a", "b", "c"))
	next := regexp.MustCompile(`<link rel="next" href="https://[^/]*/([^"]*)"`)
	var pages []string
	for target := "$Resources/Queues?$top=2&api-version=2021-05"; target != ""; {
		body := adminGet(t, server, target)
		pages = append(pages, strings.Join(regexp.MustCompile(`<title type="text">(.)</title>`).FindAllString(body, -1), ""))
		if target = ""; next.MatchString(body) {
			target = html.UnescapeString(next.FindStringSubmatch(body)[1])
		}
	}
	if len(pages) != 2 || strings.Count(pages[0], "title") != 4 || !strings.Contains(pages[1], ">c<") {
		t.Errorf("pages are %q", pages)
	}
}

// adminGet reads as the owner of the namespace.
func adminGet(t *testing.T, server *emulator.Server, target string) string {
	t.Helper()
	q, err := http.NewRequest(http.MethodGet, "http://"+server.Addr()+"/"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+emulator.EntraToken(time.Now().Add(time.Hour)))
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s, %v", target, answer.Status, err)
	}
	return string(body)
}
