//! Front Door as the program knows it.

use aro_role::{Beside, LayoutSetting, ListenerDescriptor, RegionSetting, RoleDescriptor};
use aro_runtime::Role as _;

use crate::config::FrontdoorConfig;
use crate::{Frontdoor, FrontdoorPorts};

/// The role's descriptor. It has no Deployment: Front Door is global, outside of every region's clusters. `aro up` runs it
/// beside them, before the website of its own region.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Frontdoor::NAME,
    about: "Run the public face of the clusters' OIDC documents alone",
    command: "frontdoor",
    group: None,
    section: |schema| schema.with::<FrontdoorConfig>(),
    listeners: &[ListenerDescriptor {
        name: HTTP,
        port: 8446,
        endpoint: "frontdoor",
        about: "OIDC documents of the clusters",
        key: "frontdoor.listen",
        address: |config| Ok(config.section::<FrontdoorConfig>()?.listen),
        scheme: |config| {
            let tls = config.section::<FrontdoorConfig>().is_ok_and(|config| config.cert_file.is_some());
            if tls { "https" } else { "http" }
        },
        debug: None,
    }],
    needs: &[],
    deployment: |_| None,
    beside: Some(Beside {
        settings: &[
            ("frontdoor.origin", RegionSetting::Layout(LayoutSetting::OidcWebsite)),
            ("frontdoor.connect_to", RegionSetting::AddressOf("azure-local")),
            ("frontdoor.ca_file", RegionSetting::CloudFile("ca.pem")),
            ("frontdoor.cert_file", RegionSetting::CloudFile("frontdoor.crt")),
            ("frontdoor.key_file", RegionSetting::CloudFile("frontdoor.key")),
        ],
    }),
    start: |mut context| {
        let ports = FrontdoorPorts {
            listener: context.listener(HTTP)?,
            resolve: context.resolve.clone(),
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Frontdoor>(ports)
    },
};

/// The listener for clients.
const HTTP: &str = "http";
