//! The frontend as a role.

use std::sync::Arc;

use aro_rp_store::Documents;
use aro_runtime::{BuildError, Checked, Component, Role, RunError, Scope};
use aro_store::UnreadableDocuments;
use aro_web::{ServeOptions, serve};
use axum::Router;
use tokio::sync::Notify;

use crate::cascade;
use crate::config::FrontendConfig;
use crate::observe::Observer;
use crate::pipeline;
use crate::ports::FrontendPorts;
use crate::rendered::Rendered;
use crate::shared::Shared;

/// The ARM resource provider's front end.
pub struct Frontend {
    config: Checked<FrontendConfig>,
    listener: aro_runtime::Listener,
    ready: Component,
    shared: Arc<Shared>,
}

impl Role for Frontend {
    const NAME: &'static str = "frontend";
    type Config = FrontendConfig;
    type Ports = FrontendPorts;

    fn build(config: Checked<FrontendConfig>, ports: FrontendPorts) -> Result<Self, BuildError> {
        let shared = Arc::new(Shared {
            documents: Documents::new(ports.store, UnreadableDocuments::new(&ports.metrics)),
            clock: ports.clock,
            location: config.location.clone(),
            max_body: usize::try_from(config.max_body.get()).unwrap_or(usize::MAX),
            allow_data_plane_identities: config.allow_data_plane_identities,
            catalogue: ports.catalogue,
            preflight: ports.preflight,
            observer: Observer::new(&ports.metrics),
            rendered: Rendered::new(config.rendered_cache.get()),
            cascade: Notify::new(),
        });
        Ok(Self { config, listener: ports.listener, ready: ports.readiness.component("frontend"), shared })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let store = self.shared.documents.store();
        store.ping().await.map_err(|error| RunError::caused("reach the document store", error))?;
        cascade::start(&self.shared, &scope);
        let options = ServeOptions {
            max_connections: self.config.max_connections,
            header_timeout: self.config.header_timeout.get(),
            drain: self.config.drain.get(),
            ..ServeOptions::named("frontend")
        };
        serve(self.listener, router(&self.shared), &scope, options);
        self.shared.observer.health.set(1);
        self.ready.ready();
        scope.cancelled().await;
        self.shared.observer.health.set(0);
        Ok(())
    }
}

/// All paths go to one pipeline; it does its own routing, because ARM's paths match without regard to case.
fn router(shared: &Arc<Shared>) -> Router {
    let shared = shared.clone();
    Router::new()
        .fallback(move |request| pipeline::handle(shared.clone(), request))
        .layer(aro_web::TraceLayer::new())
}
