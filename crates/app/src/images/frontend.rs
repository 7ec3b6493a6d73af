//! `aro/frontend`.

use std::sync::Arc;

use aro_frontend::{AcceptAll, BuiltInCatalogue, Frontend, FrontendPorts};
use aro_kube_apiserver::Started;
use aro_runtime::Fault;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Container, FRONTEND_PORT};

pub(super) fn start(container: Container) -> BoxFuture<'static, Result<Started, Fault>> {
    async move {
        let ([listener], started) = container.bind([FRONTEND_PORT]).await?;
        let ports = FrontendPorts {
            listener,
            store: container.world.store.clone(),
            clock: container.world.clock.clone(),
            catalogue: Arc::new(BuiltInCatalogue),
            preflight: Arc::new(AcceptAll),
            metrics: container.metrics.clone(),
            readiness: container.readiness.clone(),
        };
        container.launch::<Frontend>(container.config.frontend.clone(), ports)?;
        Ok(started)
    }
    .boxed()
}
