//! The DNS server's metrics.

use aro_runtime::Metrics;
use hickory_proto::op::ResponseCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// How a query came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A datagram.
    Udp,
    /// A connection.
    Tcp,
}

impl Transport {
    fn label(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueryLabels {
    code: &'static str,
    transport: &'static str,
}

/// The metrics of one DNS server.
#[derive(Debug, Clone, Default)]
pub struct DnsMetrics {
    queries: Family<QueryLabels, Counter>,
    pub(crate) zones: Gauge,
    pub(crate) record_sets: Gauge,
    pub(crate) bytes: Gauge,
    pub(crate) over_budget: Counter,
    pub(crate) unreadable: Counter,
}

impl DnsMetrics {
    /// Registers them.
    pub fn new(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(|registry| {
            registry.register("dns_queries", "Queries by response code and transport", own.queries.clone());
            registry.register("dns_zones", "Zones served", own.zones.clone());
            registry.register("dns_record_sets", "Record sets in memory", own.record_sets.clone());
            registry.register(
                "dns_zone_memory_bytes",
                "Bytes of zone documents in memory",
                own.bytes.clone(),
            );
            registry.register(
                "dns_documents_over_budget",
                "Documents not served because the memory budget is used up",
                own.over_budget.clone(),
            );
            registry.register(
                "dns_unreadable_documents",
                "Documents not served because they cannot be decoded",
                own.unreadable.clone(),
            );
        });
        own
    }

    pub(crate) fn count_query(&self, code: ResponseCode, transport: Transport) {
        let code = match code {
            ResponseCode::NoError => "noerror",
            ResponseCode::FormErr => "formerr",
            ResponseCode::ServFail => "servfail",
            ResponseCode::NXDomain => "nxdomain",
            ResponseCode::NotImp => "notimp",
            ResponseCode::Refused => "refused",
            ResponseCode::BADVERS => "badvers",
            _ => "other",
        };
        self.queries.get_or_create(&QueryLabels { code, transport: transport.label() }).inc();
    }
}
