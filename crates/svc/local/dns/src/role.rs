//! The DNS server as a role.

use std::sync::Arc;

use aro_net::AdmissionLimits;
use aro_runtime::{BuildError, ByteSize, Checked, Component, Fault, Role, RunError, Scope, TaskKind};
use aro_store::SharedStore;
use tokio::net::UdpSocket;

use crate::config::DnsConfig;
use crate::follow::follow;
use crate::metrics::DnsMetrics;
use crate::ports::DnsPorts;
use crate::serve::{self, Limits, Responder};

/// The authoritative DNS server.
pub struct Dns {
    listener: aro_runtime::Listener,
    store: SharedStore,
    ready: Component,
    responder: Arc<Responder>,
    zone_memory: usize,
}

impl Role for Dns {
    const NAME: &'static str = "dns";
    type Config = DnsConfig;
    type Ports = DnsPorts;

    fn build(config: Checked<DnsConfig>, ports: DnsPorts) -> Result<Self, BuildError> {
        let limits = Limits {
            max_query: size(config.max_query),
            max_udp: config.max_datagram,
            idle: config.idle_timeout.get(),
            admission: AdmissionLimits {
                connections: config.max_connections,
                handshakes: config.max_connections,
                per_peer: config.max_connections_per_peer,
                per_loopback_peer: config.max_connections_per_peer,
            },
        };
        let metrics = DnsMetrics::new(&ports.metrics);
        Ok(Self {
            listener: ports.listener,
            store: ports.store,
            ready: ports.readiness.component("dns"),
            responder: Arc::new(Responder { zones: ports.zones, metrics, limits }),
            zone_memory: size(config.zone_memory),
        })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let address = self.listener.local_addr();
        let udp = UdpSocket::bind(address).await;
        let udp =
            udp.map_err(|error| RunError::caused(format!("bind {address} over UDP (`dns.listen`)"), error))?;
        serve::start(self.listener, udp, self.responder.clone(), &scope);
        let (zones, metrics) = (self.responder.zones.clone(), self.responder.metrics.clone());
        let stop = scope.clone();
        // A worker: without it the zones would go stale while the role looks healthy.
        scope.spawn(TaskKind::Worker, "follow", async move {
            let following = follow(self.store, zones, self.zone_memory, metrics, move || self.ready.ready());
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = following => {}
            }
            Ok::<_, Fault>(())
        });
        scope.cancelled().await;
        Ok(())
    }
}

fn size(size: ByteSize) -> usize {
    usize::try_from(size.get()).unwrap_or(usize::MAX)
}
