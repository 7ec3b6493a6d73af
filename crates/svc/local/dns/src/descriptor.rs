//! The DNS server as the program knows it.

use aro_role::{Beside, ListenerDescriptor, Need, RoleDescriptor};
use aro_runtime::Role as _;

use crate::config::DnsConfig;
use crate::{Dns, DnsPorts, SharedZones};

/// The role's descriptor. It has no Deployment: in a region it runs beside the clusters, as Azure DNS does.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Dns::NAME,
    about: "Run the DNS server of the local cloud's zones alone",
    command: "dns",
    group: None,
    section: |schema| schema.with::<DnsConfig>(),
    listeners: &[ListenerDescriptor {
        name: DNS,
        port: 5353,
        endpoint: "dns",
        about: "DNS of the region's zones, over UDP and TCP",
        key: "dns.listen",
        address: |config| Ok(config.section::<DnsConfig>()?.listen),
        scheme: |_| "dns",
        debug: None,
    }],
    needs: &[Need::Store],
    deployment: |_| None,
    beside: Some(Beside { settings: &[] }),
    start: |mut context| {
        let ports = DnsPorts {
            listener: context.listener(DNS)?,
            store: context.store()?,
            zones: SharedZones::default(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Dns>(ports)
    },
};

/// The listener for queries.
const DNS: &str = "dns";
