//! The broker as a role.

use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_net::AdmissionLimits;
use aro_pki::{FileIdentity, IdentityPaths};
use aro_runtime::{BuildError, Checked, Component, Fault, Role, RunError, Scope, TaskKind};
use tokio_rustls::TlsAcceptor;

use crate::acl::Acl;
use crate::config::BrokerConfig;
use crate::connection::Tls;
use crate::hub::{Hub, Limits};
use crate::listen;
use crate::metrics::BrokerMetrics;
use crate::ports::BrokerPorts;

/// The embedded MQTT broker.
pub struct Broker {
    config: Checked<BrokerConfig>,
    listener: aro_runtime::Listener,
    clock: SharedClock,
    ready: Component,
    hub: Arc<Hub>,
}

impl Role for Broker {
    const NAME: &'static str = "broker";
    type Config = BrokerConfig;
    type Ports = BrokerPorts;

    fn build(config: Checked<BrokerConfig>, ports: BrokerPorts) -> Result<Self, BuildError> {
        let limits = Limits {
            max_packet: size(config.max_packet),
            receive_maximum: config.receive_maximum,
            queue_messages: config.queue_messages,
            queue_bytes: size(config.queue_bytes),
            subscriptions: config.max_subscriptions,
        };
        let acl = Acl::new(&config.source_id, config.servers.clone());
        Ok(Self {
            listener: ports.listener,
            clock: ports.clock,
            ready: ports.readiness.component("broker"),
            hub: Arc::new(Hub::new(acl, limits, BrokerMetrics::new(&ports.metrics))),
            config,
        })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let paths = self.config.tls().map_err(|half| RunError::caused("set up TLS", half))?;
        let tls = match paths {
            Some(paths) => Some(prove(paths, self.clock, self.config.reread.get(), &scope).await?),
            None => None,
        };
        let limits = AdmissionLimits {
            connections: self.config.max_connections,
            handshakes: self.config.max_handshakes,
            per_peer: self.config.max_connections_per_peer,
            per_loopback_peer: self.config.max_loopback_connections,
        };
        listen::start(self.listener, tls, self.hub, limits, &scope);
        self.ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}

fn size(size: aro_runtime::ByteSize) -> usize {
    usize::try_from(size.get()).unwrap_or(usize::MAX)
}

/// TLS 1.3 with client certificates, from files that are reloaded when they change.
async fn prove(
    paths: IdentityPaths,
    clock: SharedClock,
    reread: Duration,
    scope: &Scope,
) -> Result<Tls, RunError> {
    let now = clock.now();
    let loaded = tokio::task::spawn_blocking(move || FileIdentity::load(paths, now)).await;
    let identity = loaded
        .map_err(|error| RunError::caused("read the broker's certificate", error))?
        .map_err(|error| RunError::caused("read the broker's certificate", error))?;
    let identity = Arc::new(identity);
    let config = identity.server_config().map_err(|error| RunError::caused("set up TLS", error))?;
    let tls = Tls { acceptor: TlsAcceptor::from(Arc::new(config)), clock: clock.clone() };
    scope.spawn(TaskKind::Helper, "certificates", async move {
        loop {
            tokio::time::sleep(reread).await;
            let (identity, now) = (identity.clone(), clock.now());
            match tokio::task::spawn_blocking(move || identity.reload(now)).await {
                Ok(Ok(true)) => tracing::info!("broker certificate reloaded"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = %aro_base::chain(&error), "new certificate files rejected; keeping the old ones");
                }
                Err(error) => return Err(Fault::caused("reread the broker's certificate", error)),
            }
        }
    });
    Ok(tls)
}
