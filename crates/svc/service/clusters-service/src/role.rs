//! The role: builds the parts and connects them.

use std::sync::Arc;

use aro_decisions::Decisions;
use aro_runtime::{BuildError, Checked, Component, Listener, Role, RunError, Scope};

use crate::config::ClustersServiceConfig;
use crate::ports::ClustersServicePorts;
use crate::records::Records;
use crate::shared::Shared;

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
        let shared = Shared {
            environment,
            records: Records::new(ports.store, &ports.metrics),
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
        drop(http);
        ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}
