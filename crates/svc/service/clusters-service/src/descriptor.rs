//! The role as the program knows it.

use aro_role::{
    Certificate, CertificateUsage, DebugListener, Issuer, ListenerDescriptor, Need, RegionCluster,
    RoleDeployment, RoleDescriptor, certificate_files,
};
use aro_runtime::Role as _;

use crate::config::ClustersServiceConfig;
use crate::{ClustersService, ClustersServicePorts};

/// The role's descriptor.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: ClustersService::NAME,
    about: "Run Clusters Service alone",
    command: "clusters-service",
    group: None,
    section: |schema| schema.with::<ClustersServiceConfig>(),
    listeners: &[ListenerDescriptor {
        name: HTTP,
        port: 8000,
        endpoint: "clusters-service",
        about: "Clusters Service's REST API",
        key: "clusters_service.listen",
        address: |config| Ok(config.section::<ClustersServiceConfig>()?.listen),
        scheme: |_| "http",
        debug: Some(DebugListener {
            key: "clusters_service.debug_listen",
            address: |config| Ok(Some(config.section::<ClustersServiceConfig>()?.debug_listen)),
            scheme: "http",
        }),
    }],
    needs: &[Need::Store, Need::Cloud],
    deployment,
    beside: None,
    start: |mut context| {
        let ports = ClustersServicePorts {
            http: context.listener(HTTP)?,
            store: context.store()?,
            resolve: context.resolve.clone(),
            cloud: Some(context.cloud()?),
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<ClustersService>(ports)
    },
};

/// The listener of the REST API.
const HTTP: &str = "http";
/// Where the pod finds its certificate for Maestro.
const MAESTRO_TLS: &str = "/etc/aro/maestro-tls";
/// The name of Deployment and Service.
const NAME: &str = "clusters-service";

fn deployment(cluster: &RegionCluster<'_>) -> Option<RoleDeployment> {
    if !cluster.is_service() {
        return None;
    }
    let files = ["MAESTRO_CERT_FILE", "MAESTRO_KEY_FILE", "MAESTRO_CA_FILE"];
    Some(RoleDeployment {
        env: certificate_files(MAESTRO_TLS, "CLUSTERS_SERVICE", files),
        certificates: vec![Certificate {
            secret: "clusters-service-maestro-tls",
            path: MAESTRO_TLS,
            issuer: Issuer::Sources,
            // Maestro grants all sources of the environment's shards to this name.
            common_name: NAME.to_owned(),
            services: Vec::new(),
            usage: CertificateUsage::Client,
        }],
        ..RoleDeployment::new("cluster-service", NAME)
    })
}
