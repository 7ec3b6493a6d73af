//! `aro/mce`.

use aro_kube_apiserver::Started;
use aro_mce::{Mce, McePorts};
use aro_runtime::Fault;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Container;

pub(super) fn start(container: Container) -> BoxFuture<'static, Result<Started, Fault>> {
    async move {
        let ([], started) = container.bind([]).await?;
        let client = container.client()?;
        let ports = McePorts {
            hub: client.clone(),
            // Stable for as long as the cluster lives, wherever it is reached.
            hub_address: container.spec.cluster.clone(),
            spoke: client,
            clock: container.world.clock.clone(),
            metrics: container.metrics.clone(),
            readiness: container.readiness.clone(),
        };
        container.launch::<Mce>(container.config.mce.clone(), ports)?;
        Ok(started)
    }
    .boxed()
}
