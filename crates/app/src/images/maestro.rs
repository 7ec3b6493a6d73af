//! `aro/maestro-server` and `aro/maestro-agent`.

use aro_kube_apiserver::Started;
use aro_maestro::{MaestroPorts, MaestroServer};
use aro_maestro_agent::{MaestroAgent, MaestroAgentPorts};
use aro_runtime::Fault;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Container, MAESTRO_GRPC_PORT, MAESTRO_PORT};

pub(super) fn start_server(container: Container) -> BoxFuture<'static, Result<Started, Fault>> {
    async move {
        let ([rest, grpc], started) = container.bind([MAESTRO_PORT, MAESTRO_GRPC_PORT]).await?;
        let ports = MaestroPorts {
            rest,
            grpc,
            store: container.world.store.clone(),
            resolve: container.names(),
            clock: container.world.clock.clone(),
            metrics: container.metrics.clone(),
            readiness: container.readiness.clone(),
        };
        container.launch::<MaestroServer>(container.config.maestro.clone(), ports)?;
        Ok(started)
    }
    .boxed()
}

pub(super) fn start_agent(container: Container) -> BoxFuture<'static, Result<Started, Fault>> {
    async move {
        let ([], started) = container.bind([]).await?;
        let ports = MaestroAgentPorts {
            client: container.client()?,
            store: container.world.store.clone(),
            resolve: container.names(),
            clock: container.world.clock.clone(),
            metrics: container.metrics.clone(),
            readiness: container.readiness.clone(),
        };
        container.launch::<MaestroAgent>(container.config.maestro_agent.clone(), ports)?;
        Ok(started)
    }
    .boxed()
}
