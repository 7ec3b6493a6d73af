//! The server as a role.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_control::{Pace, ReconcileMetrics, drive};
use aro_event_service::serve as event_service;
use aro_mqtt::{Credentials, Link, LinkOptions, LinkPorts};
use aro_pki::IdentityPaths;
use aro_runtime::{BuildError, Checked, Component, Fault, Phase, Role, RunError, Scope, TaskKind};
use aro_store::Slice;
use aro_web::{ServeOptions, serve, serve_after};
use uuid::Uuid;

use crate::config::{MaestroConfig, SubscriptionType};
use crate::dispatch::Dispatcher;
use crate::grpc::Door;
use crate::grpc::access::{Grants, Mutual};
use crate::hear::Ears;
use crate::observe::Observer;
use crate::ports::MaestroPorts;
use crate::rows::Rows;
use crate::streams::Streams;
use crate::{ledger, rest, resync};

/// The group that shares statuses among replicas.
const GROUP: &str = "statussubscribers";
/// Largest message on the gRPC door.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// Publishes under way at once.
const PUBLISHES: usize = 256;
/// Consumers asked for statuses after a connect.
const MOST_CONSUMERS: usize = 100_000;
/// The pauses between tries to ask all agents for statuses.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often attempts that are due are looked for.
const RETRY: Duration = Duration::from_millis(250);

/// The Maestro server.
pub struct MaestroServer {
    config: Checked<MaestroConfig>,
    ports: MaestroPorts,
    ready: Component,
    replica: String,
    dispatcher: Arc<Dispatcher>,
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
        let dispatcher = Dispatcher::new(
            rows,
            topics,
            config.source_id.clone(),
            usize::try_from(config.max_event.get()).unwrap_or(usize::MAX),
            ports.clock.clone(),
            Observer::new(&ports.metrics),
        );
        let ready = ports.readiness.component(Self::NAME);
        Ok(Self { config, ports, ready, replica, dispatcher: Arc::new(dispatcher) })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let Self { config, ports, ready, replica, dispatcher } = self;
        let half = |half| RunError::caused("find the certificates", half);
        let (grpc, broker) = (config.grpc_tls().map_err(half)?, config.broker_tls().map_err(half)?);
        let store = dispatcher.rows.store();
        store.ping().await.map_err(|error| RunError::caused("reach the document store", error))?;
        make_consumers(&dispatcher, &config.consumers).await?;

        let workers = scope.child(Phase::Reconcilers, "workers");
        let streams = Streams::start(dispatcher.clone(), replica.clone(), &workers);
        streams.loaded().await;

        let (ears, asked) = Ears::start(dispatcher.clone(), &workers);
        let connected = ears.connected.clone();
        let group = (config.subscription_type == SubscriptionType::Shared).then_some(GROUP);
        let link_ports = LinkPorts {
            resolve: ports.resolve.clone(),
            clock: ports.clock.clone(),
            metrics: ports.metrics.clone(),
        };
        let subscriptions = vec![dispatcher.topics.from_agents(group)];
        let link =
            Link::start(link_options(&config, broker, &replica), subscriptions, ears, link_ports, &scope);
        // Set once, here.
        let _ = dispatcher.link.set(link);
        let pace = Pace { tasks: 1, passes: PUBLISHES, ..Pace::default() };
        drive(
            dispatcher.clone(),
            dispatcher.queue.clone(),
            pace,
            ReconcileMetrics::new(&ports.metrics),
            &workers,
        );
        resync::start(dispatcher.clone(), asked, &workers);

        let own = dispatcher.clone();
        workers.spawn(TaskKind::Helper, "after-connect", async move {
            loop {
                connected.notified().await;
                own.again();
                let mut pause = FIRST_PAUSE;
                while let Err(error) = ask_everybody(&own).await {
                    tracing::warn!(error = %chain(&error), "agents were not all asked for statuses; trying again");
                    tokio::select! {
                        // The next connect begins anew.
                        () = connected.notified() => {
                            own.again();
                            pause = FIRST_PAUSE;
                        }
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                    }
                }
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<(), Fault>(())
        });
        let (own, alarm) = (dispatcher.clone(), config.undelivered_alarm.get());
        workers.spawn(TaskKind::Helper, "retries", async move {
            loop {
                tokio::time::sleep(RETRY).await;
                ledger::look(&own, alarm);
                if own.link.get().is_some_and(Link::is_connected) {
                    own.retry_due().await;
                }
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<(), Fault>(())
        });

        let api = rest::router(dispatcher.rows.clone(), dispatcher.clone(), &ports.metrics);
        let router = rest::health(ports.store.clone()).merge(api);
        serve(ports.rest, router, &scope, ServeOptions::named("maestro-rest"));
        let door = Door {
            dispatcher: dispatcher.clone(),
            streams,
            grants: Grants::new(&config.grpc_sources, grpc.is_some()),
            heartbeat: config.heartbeat.get(),
            stop: scope.token().clone(),
        };
        let service = event_service(Arc::new(door), MAX_MESSAGE);
        let options = ServeOptions::named("maestro-grpc");
        match grpc {
            Some(paths) => {
                let mutual = Mutual::new(paths, ports.clock.clone(), service, &scope)?;
                serve_after(ports.grpc, mutual, &scope, options);
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
        // Brokers without TLS go by the name.
        username: files.is_none().then(|| config.source_id.clone()),
        credentials: files.map(Credentials::Files),
        server_name: config.broker_server_name.clone(),
        max_packet: usize::try_from(config.max_event.get()).unwrap_or(usize::MAX),
        ..LinkOptions::new(config.broker.clone(), replica)
    }
}

/// Makes the consumers that the configuration names.
async fn make_consumers(dispatcher: &Dispatcher, names: &[String]) -> Result<(), RunError> {
    let failed = |error| RunError::caused("make the configured consumers", error);
    for name in names {
        if dispatcher.rows.consumer_by_name(name).await.map_err(failed)?.is_some() {
            continue;
        }
        match dispatcher.rows.create_consumer(Some(name), BTreeMap::new()).await {
            Ok(_) => tracing::info!(consumer = name, "a consumer was made"),
            // Another replica was faster.
            Err(fault) if fault.code == crate::fault::Code::Conflict => {}
            Err(fault) => return Err(failed(fault)),
        }
    }
    Ok(())
}

async fn ask_everybody(dispatcher: &Dispatcher) -> Result<(), Fault> {
    let all = dispatcher.rows.list_consumers(None, Slice { size: MOST_CONSUMERS, ..Slice::default() }).await;
    let all = all.map_err(|error| Fault::caused("list consumers", error))?;
    let names: Vec<String> = all.into_iter().map(|row| row.value.name).collect();
    resync::ask_all(dispatcher, &names).await
}
