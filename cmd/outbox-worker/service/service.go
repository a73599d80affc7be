package service

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"azsqloutbox/servicebus"
	"azsqloutbox/sqlserver"
	"azsqloutbox/worker"
)

const (
	// backlogEvery is how often the table is asked what waits in it: a few index
	// seeks, and a count that stops at worker.BacklogCountCap a type at the latest.
	backlogEvery = 15 * time.Second
	// brokerPatience is for the look at the broker at the start.
	brokerPatience = 30 * time.Second
	// closePatience is what each part gets at the end whose other side may not
	// answer: a dead broker must not cost the last metrics.
	closePatience = 2 * time.Second
)

// Service is one worker process: made by New, run once.
type Service struct {
	settings  Settings
	log       *zap.Logger
	db        *sql.DB
	store     *sqlserver.Store
	publisher *servicebus.Publisher
	worker    *worker.Worker
	metrics   *metrics
	picker    *picker // of countBacklog alone
	traces    *traces // nil where nobody takes them
	exports   bool    // telemetry leaves the process
	about     About
}

// New checks every setting and puts the parts together. It touches neither the
// database nor the broker nor a port; an error is a wrong setting, in one line
// that names it and holds no secret.
func New(settings Settings, log *zap.Logger) (*Service, error) {
	if err := settings.check(); err != nil {
		return nil, err
	}
	routes, err := settings.ServiceBus.routes()
	if err != nil {
		return nil, err
	}
	s := &Service{settings: settings, log: log}
	if err := s.build(routes); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// build puts the parts together; what it made before an error is there to be
// closed.
func (s *Service) build(routes servicebus.Routes) (err error) {
	settings, log := s.settings, s.log
	source, err := settings.source()
	if err != nil {
		return err
	}
	owner := cmp.Or(settings.Process.Owner, defaultOwner())
	telemetry, err := newTelemetry(context.Background(), owner) // connects to nothing yet
	if err != nil {
		return err
	}
	if s.metrics, err = newMetrics(telemetry, routes.EventTypes()); err != nil {
		return errors.Join(err, telemetry.shutdown(context.Background()))
	}
	s.picker = newPicker(routes.EventTypes())
	s.exports = telemetry.metrics != nil || telemetry.spans != nil
	if telemetry.spans != nil {
		s.traces = newTraces(telemetry.spans, telemetry.resource)
	}
	s.db, err = sqlserver.Open(settings.SQL.DSN, sqlserver.Options{
		AppName:      "outbox-worker",
		MaxOpenConns: sqlserver.ConnectionsFor(cmp.Or(settings.Claim.Lanes, worker.DefaultLanes)),
	})
	if err != nil {
		return fmt.Errorf("--sql-dsn: %w", err)
	}
	if s.store, err = sqlserver.New(s.storeConfig(routes, owner, source)); err != nil {
		return err
	}
	if s.publisher, err = settings.ServiceBus.publisher(routes, source, log); err != nil {
		return err
	}
	s.worker, err = worker.New(s.workerConfig(routes))
	if err != nil {
		return err
	}
	s.about = About{
		Version: BuildVersion(), Owner: owner,
		Table:  settings.SQL.host() + " " + settings.SQL.Names().String(),
		Broker: s.publisher.Host() + " " + strings.Join(routes.Entities(), ", "),
	}
	return s.metrics.watch(s.worker)
}

func (s *Service) storeConfig(routes servicebus.Routes, owner, source string) sqlserver.Config {
	return sqlserver.Config{
		DB:            s.db,
		Names:         s.settings.SQL.Names(),
		Owner:         owner,
		Version:       heartbeatVersion(),
		Source:        source,
		Destinations:  routes.Entities(),
		Lease:         s.settings.Claim.Lease,
		MaxEventBytes: s.settings.SQL.MaxEventBytes,
		MaxBatchBytes: s.settings.SQL.MaxBatchBytes,
		MaxAttempts:   s.settings.Claim.MaxAttempts,
		Logger:        s.log,
	}
}

func (s *Service) workerConfig(routes servicebus.Routes) worker.Config {
	c := s.settings.Claim
	cfg := worker.Config{
		Store: s.store, Publisher: s.publisher, Logger: s.log,
		EventTypes: routes.EventTypes(), Discover: routes.HasDefault(),
		Destination: destination(routes),
		Rate: func(entity string) float64 {
			return cmp.Or(routes.Rate(entity), s.settings.ServiceBus.Rate)
		},
		Lanes: c.Lanes, Batch: c.Batch, MaxRounds: c.MaxRounds,
		Lease: c.Lease, Grace: s.settings.Process.Grace,
		IdlePoll: c.IdlePoll, ReapEvery: c.ReapEvery,
		MaxAttempts: c.MaxAttempts, Paused: c.Paused, Drain: c.Drain,
	}
	observers := worker.Observers{s.metrics}
	if s.traces != nil {
		observers = append(observers, s.traces)
	}
	if s.settings.Observer != nil {
		observers = append(observers, s.settings.Observer)
	}
	cfg.Observer = observers
	if c.MaxInFlight != nil {
		cfg.MaxInFlight = *c.MaxInFlight
	}
	if c.PublishDeadline != nil {
		cfg.PublishDeadline = *c.PublishDeadline
	}
	return cfg
}

// destination names the queue or topic of an event type.
func destination(routes servicebus.Routes) func(string) string {
	return func(eventType string) string {
		if route, ok := routes.Lookup(eventType); ok {
			return route.Entity
		}
		return "no route: " + eventType
	}
}

// Run works until ctx ends or the backlog is drained, and then closes
// everything. An error is something that no waiting mends.
func (s *Service) Run(ctx context.Context) error {
	defer s.close()
	if s.exports {
		otel.SetErrorHandler(&exportErrors{log: s.log})
	}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	group, serving := errgroup.WithContext(serving)
	// A port that cannot be served ends the work, and the end of the work ends
	// the serving: /readyz and /metrics answer while the worker stops.
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	if s.settings.Process.Listen != "off" {
		listener, err := net.Listen("tcp", s.settings.Process.Listen)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		endpoints := endpoints{worker: s.worker, metrics: s.metrics, about: s.about, started: time.Now()}
		group.Go(func() error {
			defer stopWorking()
			return serve(serving, listener, endpoints.handler(), s.log)
		})
		s.log.Info("serving health and metrics", zap.Stringer("address", listener.Addr()))
	}
	group.Go(func() error {
		s.countBacklog(serving)
		return nil
	})
	group.Go(func() error {
		s.checkBroker(serving)
		return nil
	})
	s.log.Info("starting",
		zap.String("version", s.about.Version), zap.String("owner", s.about.Owner),
		zap.String("table", s.about.Table), zap.String("broker", s.about.Broker),
		zap.Int("lanes", s.settings.Claim.Lanes), zap.Int("batch", s.settings.Claim.Batch))
	defer context.AfterFunc(ctx, s.sayStopping)()
	err := s.worker.Run(working)
	stopServing()
	err = errors.Join(group.Wait(), err)
	if err == nil {
		s.log.Info("stopped")
	}
	return err
}

// sayStopping comes at once, before anything is waited for: who pressed Ctrl-C
// would otherwise take a silent process for a dead one.
func (s *Service) sayStopping() {
	status := s.worker.Status()
	s.log.Info("stopping: nothing new is claimed; waiting for what is in hand, for the grace period at most; a second signal ends it at once, and its claims then wait for their leases to end",
		zap.Int64("events", status.InFlightEvents), zap.Int64("claims", status.OpenClaims),
		zap.Duration("grace", s.settings.Process.Grace), zap.Duration("lease", s.settings.Claim.Lease))
}

// checkBroker says at the start what would otherwise show with the first event:
// an entity that is not there, a role that was forgotten. It stops nothing.
func (s *Service) checkBroker(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	if err := s.publisher.Check(call); err != nil && ctx.Err() == nil {
		s.log.Warn("not every queue and topic can be reached; their events will wait", zap.Error(err))
	}
}

// countBacklog keeps the backlog's numbers fresh for metrics and status page.
// While they cannot be had, there are none: an old number would look like the
// truth.
func (s *Service) countBacklog(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	told := time.Now()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		if !s.worker.Status().Connected {
			pause.Reset(time.Second)
			continue
		}
		pause.Reset(backlogEvery)
		call, cancel := context.WithTimeout(ctx, backlogEvery)
		backlog, err := s.backlog(call)
		cancel()
		if err != nil {
			s.metrics.backlog.Store(nil)
			if ctx.Err() == nil {
				s.log.Debug("the backlog could not be counted", zap.Error(err))
			}
			continue
		}
		s.metrics.backlog.Store(backlog)
		if time.Since(told) >= backlogLogEvery {
			told = time.Now()
			logBacklog(s.log, backlog.Backlog)
		}
	}
}

func (s *Service) backlog(ctx context.Context) (*counted, error) {
	if err := s.worker.LearnTypes(ctx); err != nil { // or a pause would hide how old they are
		return nil, err
	}
	status := s.worker.Status()
	backlog, err := s.store.Backlog(ctx, append(status.EventTypes, status.Unrouted...))
	if err != nil {
		return nil, err
	}
	return &counted{Backlog: backlog, Shown: s.picker.pick(backlog.Types, status.Unrouted), at: time.Now()}, nil
}

func (s *Service) close() {
	end := func(part func(context.Context) error, otherwise string) {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		if err := part(ctx); err != nil {
			s.log.Debug(otherwise, zap.Error(err))
		}
	}
	if s.publisher != nil {
		end(s.publisher.Close, "the broker's connections did not close in time")
	}
	if s.store != nil {
		s.store.Close()
	}
	if s.db != nil {
		_ = s.db.Close() // waits for no statement: the worker has ended all of its own
	}
	if s.metrics != nil {
		end(s.metrics.provider.Shutdown, "the last metrics were not exported")
	}
	if s.traces != nil {
		end(s.traces.provider.Shutdown, "the last traces were not exported")
	}
}

// heartbeatVersion is BuildVersion as far as the column of the heartbeats holds it:
// whoever names an image after a long branch still has a worker that starts.
func heartbeatVersion() string {
	const most = 50 // bytes
	v := BuildVersion()
	return v[:min(len(v), most)]
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	owner := fmt.Sprintf("%s/%d", host, os.Getpid())
	return owner[max(0, len(owner)-longestOwner):]
}

// source is the first part of message ids: it must differ between any two
// tables whose events can meet on one entity, and must not change over time.
func (s Settings) source() (string, error) {
	if s.ServiceBus.Source != "" {
		return s.ServiceBus.Source, nil
	}
	u, err := url.Parse(s.SQL.DSN)
	if err != nil {
		return "", errors.New("--sql-dsn is no URL") // check has refused it before
	}
	for name, values := range u.Query() {
		if strings.EqualFold(name, "database") && values[0] != "" {
			return strings.Join([]string{values[0], s.SQL.Schema, s.SQL.Table}, "."), nil
		}
	}
	return "", errors.New("--sql-dsn names no database: add database=… to it, or name the events' origin with --source")
}

func (s ServiceBusSettings) publisher(routes servicebus.Routes, source string, log *zap.Logger) (*servicebus.Publisher, error) {
	cfg := servicebus.Config{
		ConnectionString: s.ConnectionString,
		Namespace:        s.Namespace,
		Routes:           routes,
		Source:           source,
		Connections:      s.Connections,
		SendTimeout:      s.SendTimeout,
		WebSockets:       s.WebSockets,
		Logger:           log,
	}
	if s.BatchBytes != nil {
		cfg.MaxBatchBytes = *s.BatchBytes
	}
	if s.ConnectionString == "" {
		credential, err := servicebus.NewCredential(s.Credential, s.IdentityClientID)
		if err != nil {
			return nil, fmt.Errorf("--servicebus-credential: %w", err)
		}
		cfg.Credential = credential
	}
	return servicebus.New(cfg)
}

// routes joins --entity and the file of --config.
func (s ServiceBusSettings) routes() (servicebus.Routes, error) {
	var routes []servicebus.Route
	if s.Config != "" {
		text, err := os.ReadFile(s.Config)
		if err != nil {
			return servicebus.Routes{}, fmt.Errorf("--config: %w", err)
		}
		if routes, err = servicebus.ParseRoutes(text); err != nil {
			return servicebus.Routes{}, fmt.Errorf("--config %s: %w", s.Config, err)
		}
	}
	if s.Entity != "" && slices.ContainsFunc(routes, func(r servicebus.Route) bool { return r.EventType == "" }) {
		return servicebus.Routes{}, fmt.Errorf("--entity (or OUTBOX_ENTITY) is %q and the file of --config has a default route too: they are the same thing, keep one", s.Entity)
	}
	if s.Entity != "" {
		routes = append(routes, servicebus.Route{Entity: s.Entity})
	}
	if len(routes) == 0 {
		return servicebus.Routes{}, errors.New("--entity or --config is missing: where shall the events go?")
	}
	r, err := servicebus.NewRoutes(routes...)
	if err != nil {
		return servicebus.Routes{}, fmt.Errorf("routes (--entity, --config): %w", err)
	}
	return r, nil
}
