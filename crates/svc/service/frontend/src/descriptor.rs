//! The frontend as the program knows it.

use std::sync::Arc;

use aro_role::{DebugListener, ListenerDescriptor, Need, RoleDeployment, RoleDescriptor};
use aro_runtime::Role as _;

use crate::config::FrontendConfig;
use crate::{AcceptAll, BuiltInCatalogue, Frontend, FrontendPorts};

/// The role's descriptor.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Frontend::NAME,
    about: "Run the ARM front end alone",
    command: "frontend",
    group: None,
    section: |schema| schema.with::<FrontendConfig>(),
    listeners: &[ListenerDescriptor {
        name: HTTP,
        port: 8443,
        endpoint: "frontend",
        about: "ARM API of Microsoft.RedHatOpenShift",
        key: "frontend.listen",
        address: |config| Ok(config.section::<FrontendConfig>()?.listen),
        scheme: |_| "http",
        debug: Some(DebugListener {
            key: "frontend.listen",
            address: |config| Ok(Some(config.section::<FrontendConfig>()?.listen)),
            scheme: "http",
        }),
    }],
    needs: &[Need::Store],
    deployment: |cluster| cluster.is_service().then(|| RoleDeployment::new("aro-hcp", "aro-hcp-frontend")),
    beside: None,
    start: |mut context| {
        let ports = FrontendPorts {
            listener: context.listener(HTTP)?,
            store: context.store()?,
            clock: context.clock.clone(),
            catalogue: Arc::new(BuiltInCatalogue),
            preflight: Arc::new(AcceptAll),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Frontend>(ports)
    },
};

/// The listener of the ARM API.
const HTTP: &str = "http";
