//! The proxy's metrics.

use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Not CONNECT.
    Method,
    /// The target is not `host:port`.
    Target,
    /// The host is not served.
    Host,
    /// The port leads nowhere.
    Port,
    /// The region's DNS server does not answer.
    Names,
    /// The destination cannot be connected to.
    Unreachable,
    /// Too many connections.
    Limit,
}

impl Reason {
    fn label(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Target => "target",
            Self::Host => "host",
            Self::Port => "port",
            Self::Names => "names",
            Self::Unreachable => "unreachable",
            Self::Limit => "limit",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabel {
    direction: &'static str,
}

/// The metrics of one proxy.
#[derive(Debug, Clone)]
pub(crate) struct ProxyMetrics {
    open: Gauge,
    opened: Counter,
    refused: Family<ReasonLabel, Counter>,
    pub(crate) from_client: Counter,
    pub(crate) to_client: Counter,
}

impl ProxyMetrics {
    /// Registers them.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let bytes = Family::<DirectionLabel, Counter>::default();
        // A statement each: the family stays locked until the end of the statement that looks into it.
        let from_client = bytes.get_or_create(&DirectionLabel { direction: "from_client" }).clone();
        let to_client = bytes.get_or_create(&DirectionLabel { direction: "to_client" }).clone();
        let own = Self {
            open: Gauge::default(),
            opened: Counter::default(),
            refused: Family::default(),
            from_client,
            to_client,
        };
        metrics.register(|registry| {
            registry.register("proxy_tunnels_open", "Tunnels open now", own.open.clone());
            registry.register("proxy_tunnels", "Tunnels opened", own.opened.clone());
            registry.register("proxy_refused", "Requests refused, by reason", own.refused.clone());
            registry.register("proxy_bytes", "Bytes relayed, by direction", bytes);
        });
        own
    }

    pub(crate) fn refuse(&self, reason: Reason) {
        self.refused.get_or_create(&ReasonLabel { reason: reason.label() }).inc();
    }

    /// Counts a tunnel until the value is dropped.
    pub(crate) fn open(&self) -> OpenTunnel {
        self.opened.inc();
        self.open.inc();
        OpenTunnel(self.open.clone())
    }
}

/// A tunnel that is counted as open.
#[derive(Debug)]
pub(crate) struct OpenTunnel(Gauge);

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.0.dec();
    }
}
