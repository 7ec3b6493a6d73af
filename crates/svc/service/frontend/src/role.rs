//! The frontend as a role.

use std::sync::Arc;

use aro_arm_server::{ArmServer, Options};
use aro_control::{Queue, ReconcileMetrics};
use aro_rp_store::Documents;
use aro_runtime::{BuildError, Checked, Component, Role, RunError, Scope};
use aro_store::UnreadableDocuments;
use aro_web::{BodyBudget, BodyLimits, ServeOptions, serve};
use axum::Router;

use crate::cascade;
use crate::config::FrontendConfig;
use crate::metrics::FrontendMetrics;
use crate::ports::FrontendPorts;
use crate::rendered::Rendered;
use crate::routes::routes;
use crate::shared::Shared;

/// The ARM resource provider's front end.
pub struct Frontend {
    config: Checked<FrontendConfig>,
    listener: aro_runtime::Listener,
    ready: Component,
    shared: Arc<Shared>,
    router: Router,
    reconciles: ReconcileMetrics,
}

impl Frontend {
    /// The HTTP service, for callers in the same process.
    pub fn router(&self) -> Router {
        self.router.clone()
    }
}

impl Role for Frontend {
    const NAME: &'static str = "frontend";
    type Config = FrontendConfig;
    type Ports = FrontendPorts;

    fn build(config: Checked<FrontendConfig>, ports: FrontendPorts) -> Result<Self, BuildError> {
        let shared = Arc::new(Shared {
            documents: Documents::new(ports.store, UnreadableDocuments::new(&ports.metrics)),
            clock: ports.clock,
            location: config.location.clone().unwrap_or(ports.location),
            allow_data_plane_identities: config.allow_data_plane_identities,
            catalogue: ports.catalogue,
            preflight: ports.preflight,
            metrics: FrontendMetrics::new(&ports.metrics),
            rendered: Rendered::new(config.rendered_cache.get()),
            cascades: Queue::new(),
        });
        let options = Options {
            name: Self::NAME,
            body: BodyLimits {
                max: usize::try_from(config.max_body.get()).unwrap_or(usize::MAX),
                discard: 0,
                timeout: config.body_timeout.get(),
                budget: BodyBudget::of_bytes(config.body_budget.get()),
            },
        };
        let server = ArmServer::new(shared.clone(), routes(), &ports.metrics, &options)
            .map_err(|error| BuildError::caused("register the routes", error))?;
        let ready = ports.readiness.component("frontend");
        let reconciles = ReconcileMetrics::new(&ports.metrics);
        Ok(Self { config, listener: ports.listener, ready, shared, router: server.into_router(), reconciles })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let store = self.shared.documents.store();
        store.ping().await.map_err(|error| RunError::caused("reach the document store", error))?;
        cascade::start(&self.shared, &self.reconciles, &scope);
        let options = ServeOptions {
            max_connections: self.config.max_connections,
            // Behind an ingress it is the only peer.
            max_connections_per_peer: self.config.max_connections,
            max_loopback_connections: self.config.max_connections,
            header_timeout: self.config.header_timeout.get(),
            drain: self.config.drain.get(),
            ..ServeOptions::named("frontend")
        };
        serve(self.listener, self.router, &scope, options);
        self.shared.metrics.health.set(1);
        self.ready.ready();
        scope.cancelled().await;
        self.shared.metrics.health.set(0);
        Ok(())
    }
}
