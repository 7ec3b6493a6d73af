//! The frontend as the program knows it.

use std::sync::Arc;

use aro_net::Resolve;
use aro_peers::{ClustersService, ClustersServiceOptions};
use aro_region_layout::RegionConfig;
use aro_role::{DebugListener, ListenerDescriptor, Need, RoleDeployment, RoleDescriptor, services};
use aro_runtime::{Fault, Role as _};

use crate::config::FrontendConfig;
use crate::ports::{PREFLIGHT_DEADLINE, Preflight, VersionCatalogue};
use crate::{AcceptAll, BuiltInCatalogue, DryRun, Frontend, FrontendPorts, OfferedReleases};

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
    deployment: |cluster| {
        cluster.is_service().then(|| RoleDeployment {
            env: vec![("ARO_FRONTEND__CLUSTERS_SERVICE".to_owned(), services::CLUSTERS_SERVICE.to_owned())],
            ..RoleDeployment::new("aro-hcp", "aro-hcp-frontend")
        })
    },
    beside: None,
    start: |mut context| {
        let config = context.config.section::<FrontendConfig>();
        let config = config.map_err(|error| Fault::caused("read the frontend's configuration", error))?;
        let (catalogue, preflight) = behind(&config, context.resolve.clone());
        let region = context.config.section::<RegionConfig>();
        let region = region.map_err(|error| Fault::caused("read the region's configuration", error))?;
        let ports = FrontendPorts {
            location: region.location.clone(),
            listener: context.listener(HTTP)?,
            store: context.store()?,
            clock: context.clock.clone(),
            catalogue,
            preflight,
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Frontend>(ports)
    },
};

/// What answers for releases and preflights: Clusters Service, or what is built in.
fn behind(
    config: &FrontendConfig,
    resolve: Arc<dyn Resolve>,
) -> (Arc<dyn VersionCatalogue>, Arc<dyn Preflight>) {
    if config.clusters_service.is_empty() {
        return (Arc::new(BuiltInCatalogue), Arc::new(AcceptAll));
    }
    let options =
        ClustersServiceOptions { address: config.clusters_service.clone(), deadline: PREFLIGHT_DEADLINE };
    let client = ClustersService::new(&options, resolve);
    let releases = OfferedReleases::new(&client);
    (Arc::new(releases.clone()), Arc::new(DryRun::new(client, releases)))
}

/// The listener of the ARM API.
const HTTP: &str = "http";
