//! The server as a role: builds the parts and connects them.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_bundle::Topics;
use aro_control::{ReconcileMetrics, Runner, RunnerOptions};
use aro_decisions::Decisions;
use aro_event_service::serve as event_service;
use aro_mqtt::{Credentials, Link, LinkOptions, LinkPorts};
use aro_pki::IdentityPaths;
use aro_runtime::{BuildError, Checked, Component, LogLimiter, Phase, Role, RunError, Scope};
use aro_web::{ServeOptions, serve, serve_after};
use uuid::Uuid;

use crate::after_connect::AfterConnect;
use crate::backlog::Backlog;
use crate::config::{MaestroConfig, SubscriptionType};
use crate::encoder::AgentEncoder;
use crate::grpc::SourceService;
use crate::grpc::access::{Grants, MutualTls};
use crate::ledger::DeliveryLedger;
use crate::metrics::ServerMetrics;
use crate::orphans::OrphanDeleter;
use crate::ports::MaestroPorts;
use crate::publish_times::PublishTimes;
use crate::publisher::Publisher;
use crate::rest;
use crate::resync::{SpecResponder, StatusRequester};
use crate::retry::Retrier;
use crate::rows::Rows;
use crate::spec_publisher::SpecPublisher;
use crate::spec_queue::SpecQueue;
use crate::status_receiver::{LOG_INTERVAL, StatusReceiver};
use crate::status_writer::StatusWriter;
use crate::streams::Streams;

/// The MQTT share group of the replicas.
const GROUP: &str = "statussubscribers";
/// The largest gRPC message.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// Publishes in flight at once.
const PUBLISHES: usize = 256;

/// Unacknowledged messages of agents. Several consumers fit, each with a full queue.
const RECEIVE_WINDOW: u16 = 4000;

/// The Maestro server.
pub struct MaestroServer {
    config: Checked<MaestroConfig>,
    ports: MaestroPorts,
    ready: Component,
    replica: String,
    topics: Topics,
    rows: Rows,
}

impl Role for MaestroServer {
    const NAME: &'static str = "maestro-server";
    type Config = MaestroConfig;
    type Ports = MaestroPorts;

    fn build(config: Checked<MaestroConfig>, ports: MaestroPorts) -> Result<Self, BuildError> {
        let replica =
            config.client_id.clone().unwrap_or_else(|| format!("maestro-{}", Uuid::new_v4().simple()));
        let topics = config.topics().map_err(BuildError::new)?;
        let rows = Rows::new(ports.store.clone(), ports.clock.clone(), &config.source_id);
        let ready = ports.readiness.component(Self::NAME);
        Ok(Self { config, ports, ready, replica, topics, rows })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let Self { config, ports, ready, replica, topics, rows } = self;
        let half = |half| RunError::caused("find the certificates", half);
        let (grpc, broker) = (config.grpc_tls().map_err(half)?, config.broker_tls().map_err(half)?);
        let max_event = usize::try_from(config.max_event.get()).unwrap_or(usize::MAX);
        let clock = ports.clock.clone();
        rows.store().ping().await.map_err(|error| RunError::caused("reach the document store", error))?;
        create_consumers(&rows, &config.consumers).await?;

        let metrics = ServerMetrics::new(&ports.metrics);
        let (backlog, queue) = (Arc::new(Backlog::default()), Arc::new(SpecQueue::default()));
        let times = Arc::new(PublishTimes::default());
        let encoder = AgentEncoder::new(&config.source_id, clock.clone());
        let publisher = Arc::new(Publisher::new(topics.clone(), metrics.clone()));
        let log_limiter = Arc::new(LogLimiter::every(LOG_INTERVAL));

        let workers = scope.child(Phase::Reconcilers, "workers");
        let streams =
            Streams::start(rows.clone(), backlog.clone(), metrics.clone(), replica.clone(), &workers);
        streams.loaded().await;

        let orphans = Arc::new(OrphanDeleter {
            rows: rows.clone(),
            publisher: publisher.clone(),
            encoder: encoder.clone(),
            log_limiter: log_limiter.clone(),
        });
        let decisions = Decisions::new(&ports.store, Self::NAME, clock.clone(), &ports.metrics);
        decisions.start(&workers);
        let writer = StatusWriter {
            rows: rows.clone(),
            times: times.clone(),
            queue: queue.clone(),
            orphans: orphans.clone(),
            clock: clock.clone(),
            metrics: metrics.clone(),
            log_limiter: log_limiter.clone(),
            decisions,
        };
        let statuses = Arc::new(StatusRequester {
            rows: rows.clone(),
            publisher: publisher.clone(),
            encoder: encoder.clone(),
            max_event,
        });
        let (receiver, resync_requests) = StatusReceiver::start(
            topics.clone(),
            metrics.clone(),
            Arc::new(writer),
            &statuses,
            log_limiter,
            &workers,
        );
        let connected = StatusReceiver::connected(&receiver);
        let group = (config.subscription_type == SubscriptionType::Shared).then_some(GROUP);
        let link = Link::start(
            link_options(&config, broker, &replica),
            vec![topics.from_agents(group)],
            receiver,
            LinkPorts {
                resolve: ports.resolve.clone(),
                clock: clock.clone(),
                metrics: ports.metrics.clone(),
            },
            &scope,
        );
        publisher.attach(link);

        let specs = SpecPublisher {
            rows: rows.clone(),
            queue: queue.clone(),
            publisher: publisher.clone(),
            encoder: encoder.clone(),
            times: times.clone(),
            clock: clock.clone(),
        };
        let reconciles = ReconcileMetrics::new(&ports.metrics);
        Runner::new(Arc::new(specs), &queue.ids())
            .with_options(RunnerOptions { concurrency: PUBLISHES, ..RunnerOptions::default() })
            .with_metrics(&reconciles)
            .start(&workers);
        let responder = SpecResponder {
            rows: rows.clone(),
            publisher: publisher.clone(),
            encoder,
            orphans,
            statuses: statuses.clone(),
            metrics: metrics.clone(),
        };
        responder.start(resync_requests, &workers);
        let after_connect = AfterConnect {
            rows: rows.clone(),
            backlog: backlog.clone(),
            queue: queue.clone(),
            statuses,
            connected,
        };
        after_connect.start(&reconciles, &workers);
        let retrier = Retrier {
            rows: rows.clone(),
            backlog,
            queue: queue.clone(),
            publisher,
            clock: clock.clone(),
            metrics: metrics.clone(),
            alarm: config.undelivered_alarm.get(),
        };
        retrier.start(&reconciles, &workers);

        let ledger = DeliveryLedger { times, queue: queue.clone(), clock: clock.clone() };
        let api = rest::router(rows.clone(), Arc::new(ledger), &ports.metrics);
        let router = rest::health(ports.store.clone()).merge(api);
        serve(ports.rest, router, &scope, ServeOptions::named("maestro-rest"));
        let sources = SourceService {
            rows,
            queue,
            streams,
            metrics,
            clock: clock.clone(),
            max_event,
            grants: Grants::new(&config.grpc_sources, grpc.is_some()),
            heartbeat: config.heartbeat.get(),
            stop: scope.token().clone(),
        };
        let service = event_service(Arc::new(sources), MAX_MESSAGE);
        let options = ServeOptions::named("maestro-grpc");
        match grpc {
            Some(paths) => {
                serve_after(ports.grpc, MutualTls::new(paths, clock, service, &scope)?, &scope, options);
            }
            None => {
                serve(ports.grpc, service, &scope, options);
            }
        }
        ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}

fn link_options(config: &MaestroConfig, files: Option<IdentityPaths>, replica: &str) -> LinkOptions {
    LinkOptions {
        // A broker without TLS authorizes by user name.
        username: files.is_none().then(|| config.source_id.clone()),
        credentials: files.map(Credentials::Files),
        server_name: config.broker_server_name.clone(),
        max_packet: usize::try_from(config.max_event.get()).unwrap_or(usize::MAX),
        receive_window: RECEIVE_WINDOW,
        ..LinkOptions::new(config.broker.clone(), replica)
    }
}

/// Creates the configured consumers.
async fn create_consumers(rows: &Rows, names: &[String]) -> Result<(), RunError> {
    let failed = |error| RunError::caused("create the configured consumers", error);
    for name in names {
        if rows.consumer_by_name(name).await.map_err(failed)?.is_some() {
            continue;
        }
        match rows.create_consumer(Some(name), BTreeMap::new()).await {
            Ok(_) => tracing::info!(consumer = name, "consumer created"),
            // Another replica created it.
            Err(fault) if fault.code == crate::fault::Code::Conflict => {}
            Err(fault) => return Err(failed(fault)),
        }
    }
    Ok(())
}
