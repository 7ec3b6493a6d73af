//! The proxy as the program knows it.

use std::sync::Arc;

use aro_role::{Beside, ListenerDescriptor, RegionSetting, RoleDescriptor};
use aro_runtime::{BuildError, Role as _};

use crate::config::ProxyConfig;
use crate::{DnsNames, Proxy, ProxyPorts, RegionDestinations, Tunnels};

/// The role's descriptor. It has no Deployment: it stands before the region, on the user's machine.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Proxy::NAME,
    about: "Run the region's CONNECT proxy alone",
    command: "proxy",
    group: None,
    section: |schema| schema.with::<ProxyConfig>(),
    listeners: &[ListenerDescriptor {
        name: HTTP,
        port: 8442,
        endpoint: "proxy",
        about: "CONNECT proxy for Azure host names and the region's names (HTTPS_PROXY)",
        key: "proxy.listen",
        address: |config| Ok(config.section::<ProxyConfig>()?.listen),
        scheme: |_| "http",
        debug: None,
    }],
    needs: &[],
    deployment: |_| None,
    beside: Some(Beside {
        settings: &[
            ("proxy.azure_local", RegionSetting::AddressOf("azure-local")),
            ("proxy.front_door", RegionSetting::AddressOf("frontdoor")),
            ("proxy.dns", RegionSetting::AddressOf("dns")),
        ],
    }),
    start: |mut context| {
        let config = context.config.section::<ProxyConfig>();
        let config = config.map_err(|error| BuildError::caused("read the proxy's configuration", error))?;
        let ports = ProxyPorts {
            listener: context.listener(HTTP)?,
            destinations: Arc::new(destinations(&config)?),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Proxy>(ports)
    },
};

/// The listener for clients.
const HTTP: &str = "http";

/// Destinations by configuration: azure-local, and the zones of the configured DNS server.
fn destinations(config: &ProxyConfig) -> Result<RegionDestinations, BuildError> {
    let tunnels = Tunnels::parse(&config.tunnels);
    let tunnels = tunnels.map_err(|error| BuildError::caused("read proxy.tunnels", error))?;
    let names = DnsNames::new(config.dns, config.connect_timeout.get());
    let region = RegionDestinations::new(config.azure_local, Arc::new(names), tunnels);
    Ok(region.with_front_door(config.front_door))
}
