//! The role: builds the parts and connects them.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_decisions::Decisions;
use aro_runtime::{BuildError, Checked, Component, Fault, Listener, Role, RunError, Scope, TaskKind};
use aro_web::{ServeOptions, serve};
use url::Url;

use crate::api;
use crate::config::ClustersServiceConfig;
use crate::events::EventHub;
use crate::placement::Placement;
use crate::ports::ClustersServicePorts;
use crate::provisioning;
use crate::records::Records;
use crate::shared::Shared;
use crate::versions::{Graph, Versions};

/// How often slots without a cluster are looked for.
const SWEEP: Duration = Duration::from_mins(10);

/// Clusters Service.
pub struct ClustersService {
    http: Listener,
    ready: Component,
    shared: Arc<Shared>,
}

impl Role for ClustersService {
    const NAME: &'static str = "clusters-service";
    type Config = ClustersServiceConfig;
    type Ports = ClustersServicePorts;

    fn build(
        config: Checked<ClustersServiceConfig>,
        ports: ClustersServicePorts,
    ) -> Result<Self, BuildError> {
        let environment = config.environment().map_err(BuildError::new)?;
        let maestro =
            config.maestro().map_err(|half| BuildError::caused("find the certificates for Maestro", half))?;
        let ready = ports.readiness.component(Self::NAME);
        let decisions = Decisions::new(&ports.store, Self::NAME, ports.clock.clone(), &ports.metrics);
        let records = Records::new(ports.store, &ports.metrics);
        let placement = Placement::new(records.clone(), ports.clock.clone(), config.shard_capacity);
        let shared = Shared {
            environment,
            records,
            placement,
            versions: Versions::default(),
            clock: ports.clock,
            metrics: ports.metrics,
            resolve: ports.resolve,
            cloud: ports.cloud,
            maestro,
            decisions,
            config,
        };
        Ok(Self { http: ports.http, ready, shared: Arc::new(shared) })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let Self { http, ready, shared } = self;
        let store = shared.records.store();
        store.ping().await.map_err(|error| RunError::caused("reach the document store", error))?;
        shared.decisions.start(&scope);
        provisioning::start(&shared, &scope)?;
        let events = EventHub::new(&shared.records, shared.environment.clone());
        events.start(&scope);
        if let Some(url) = &shared.config.graph_url {
            let url = Url::parse(url)
                .map_err(|error| RunError::caused("read clusters_service.graph_url", error))?;
            let graph = Graph::new(url, shared.resolve.clone());
            let graph = graph.map_err(|error| RunError::caused("read the update graph", error))?;
            let following = shared.clone();
            scope.spawn(TaskKind::Helper, "follow-update-graph", async move {
                following.versions.follow(&graph, following.config.graph_cache.get()).await;
                Ok::<_, Fault>(())
            });
        }
        let sweeping = shared.clone();
        scope.spawn(TaskKind::Helper, "sweep-slots", async move {
            sweep_slots(&sweeping).await;
            Ok::<_, Fault>(())
        });
        let router = api::router(shared.clone(), events, &shared.metrics);
        serve(http, router, &scope, ServeOptions::named("clusters-service"));
        ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}

/// Releases the slots of clusters that were never stored, now and then.
async fn sweep_slots(shared: &Shared) {
    loop {
        tokio::time::sleep(SWEEP).await;
        match shared.placement.sweep().await {
            Ok(0) => {}
            Ok(released) => tracing::info!(released, "slots without a cluster released"),
            Err(error) => tracing::warn!(error = %chain(&error), "slots not swept"),
        }
    }
}
