//! `aro/broker`.

use aro_broker::{Broker, BrokerPorts};
use aro_kube_apiserver::Started;
use aro_runtime::Fault;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{BROKER_PORT, Container};

pub(super) fn start(container: Container) -> BoxFuture<'static, Result<Started, Fault>> {
    async move {
        let ([listener], started) = container.bind([BROKER_PORT]).await?;
        let ports = BrokerPorts {
            listener,
            clock: container.world.clock.clone(),
            metrics: container.metrics.clone(),
            readiness: container.readiness.clone(),
        };
        container.launch::<Broker>(container.config.broker.clone(), ports)?;
        Ok(started)
    }
    .boxed()
}
