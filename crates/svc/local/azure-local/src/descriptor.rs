//! The local cloud as the program knows it.

use aro_role::{Beside, LayoutSetting, ListenerDescriptor, Need, RegionSetting, RoleDescriptor};
use aro_runtime::Role as _;

use crate::{AzureLocal, AzureLocalConfig, AzureLocalPorts};

/// The role's descriptor. It has no Deployment: clusters run in a cloud, not the other way round.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: AzureLocal::NAME,
    about: "Run the local cloud alone",
    command: "azure-local",
    group: None,
    section: |schema| schema.with::<AzureLocalConfig>(),
    listeners: &[ListenerDescriptor {
        name: HTTPS,
        port: 8440,
        endpoint: "azure-local",
        about: "ARM, Entra ID and Microsoft Graph of the local cloud",
        key: "azure_local.listen",
        address: |config| Ok(config.section::<AzureLocalConfig>()?.listen),
        scheme: |_| "https",
        debug: None,
    }],
    needs: &[Need::Store],
    deployment: |_| None,
    beside: Some(Beside {
        settings: &[
            (
                "azure_local.resource_providers",
                RegionSetting::Text(
                    "[\"Microsoft.RedHatOpenShift=http://aro-hcp-frontend.aro-hcp.svc:8443\"]",
                ),
            ),
            ("azure_local.proxy", RegionSetting::AddressOf("proxy")),
            ("azure_local.service_subscriptions", RegionSetting::Layout(LayoutSetting::ServiceSubscriptions)),
        ],
    }),
    start: |mut context| {
        let ports = AzureLocalPorts {
            listener: context.listener(HTTPS)?,
            store: context.store()?,
            resolve: context.resolve.clone(),
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
            dir: context.data_dir.join("azure-local"),
        };
        context.launch::<AzureLocal>(ports)
    },
};

/// The one listener.
const HTTPS: &str = "https";
