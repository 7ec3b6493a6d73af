//! The proxy as a role.

use std::sync::Arc;

use aro_net::{AdmissionLimits, Dialer};
use aro_runtime::{BuildError, Checked, Component, Role, RunError, Scope};

use crate::config::ProxyConfig;
use crate::connection::{Limits, Literal, Shared};
use crate::listen;
use crate::metrics::ProxyMetrics;
use crate::ports::ProxyPorts;

/// The region's CONNECT proxy.
pub struct Proxy {
    listener: aro_runtime::Listener,
    ready: Component,
    shared: Arc<Shared>,
    admission: AdmissionLimits,
}

impl Role for Proxy {
    const NAME: &'static str = "proxy";
    type Config = ProxyConfig;
    type Ports = ProxyPorts;

    fn build(config: Checked<ProxyConfig>, ports: ProxyPorts) -> Result<Self, BuildError> {
        let shared = Shared {
            destinations: ports.destinations,
            dialer: Dialer::new(Arc::new(Literal), config.connect_timeout.get()),
            metrics: ProxyMetrics::new(&ports.metrics),
            limits: Limits {
                max_header: usize::try_from(config.max_header.get()).unwrap_or(usize::MAX),
                header_timeout: config.header_timeout.get(),
                idle_timeout: config.idle_timeout.get(),
                drain: config.drain.get(),
            },
        };
        let admission = AdmissionLimits {
            connections: config.max_connections,
            handshakes: config.max_connections,
            per_peer: config.max_connections_per_peer,
            per_loopback_peer: config.max_connections,
        };
        let ready = ports.readiness.component("proxy");
        Ok(Self { listener: ports.listener, ready, shared: Arc::new(shared), admission })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        listen::start(self.listener, self.shared, self.admission, &scope);
        self.ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}
