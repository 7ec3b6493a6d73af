//! The backend as the program knows it.

use aro_peers::{ClustersService, ClustersServiceOptions};
use aro_role::{Need, RoleDeployment, RoleDescriptor};
use aro_runtime::{Fault, Role as _};

use crate::{Backend, BackendConfig, BackendPorts};

/// The role's descriptor.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Backend::NAME,
    about: "Run the resource provider's backend alone",
    command: "backend",
    group: None,
    section: |schema| schema.with::<BackendConfig>(),
    listeners: &[],
    needs: &[Need::Store],
    deployment: |cluster| cluster.is_service().then(|| RoleDeployment::new("aro-hcp", "aro-hcp-backend")),
    beside: None,
    start: |context| {
        let config = context.config.section::<BackendConfig>();
        let config = config.map_err(|error| Fault::caused("read the backend's configuration", error))?;
        let options = ClustersServiceOptions {
            address: config.clusters_service.clone(),
            deadline: config.call_deadline.get(),
        };
        let ports = BackendPorts {
            store: context.store()?,
            clusters_service: ClustersService::new(&options, context.resolve.clone()),
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Backend>(ports)
    },
};
