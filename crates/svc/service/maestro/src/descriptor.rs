//! The server as the program knows it.

use aro_role::{
    Certificate, CertificateUsage, CommandGroup, DebugListener, Issuer, ListenerDescriptor, Need,
    RegionCluster, RoleDeployment, RoleDescriptor, certificate_files, services,
};
use aro_runtime::Role as _;
use serde_json::json;

use crate::config::MaestroConfig;
use crate::{MaestroPorts, MaestroServer};

/// The role's descriptor.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: MaestroServer::NAME,
    about: "Run the Maestro server alone",
    command: "server",
    group: Some(CommandGroup { name: "maestro", about: "Manifests over MQTT" }),
    section: |schema| schema.with::<MaestroConfig>(),
    listeners: &[
        ListenerDescriptor {
            name: REST,
            port: 8000,
            endpoint: "maestro",
            about: "Maestro's REST API",
            key: "maestro.listen",
            address: |config| Ok(config.section::<MaestroConfig>()?.listen),
            scheme: |_| "http",
            debug: Some(DebugListener {
                key: "maestro.debug_listen",
                address: |config| Ok(Some(config.section::<MaestroConfig>()?.debug_listen)),
                scheme: "http",
            }),
        },
        ListenerDescriptor {
            name: GRPC,
            port: 8090,
            endpoint: "maestro-grpc",
            about: "Maestro's gRPC API for sources",
            key: "maestro.grpc_listen",
            address: |config| Ok(config.section::<MaestroConfig>()?.grpc_listen),
            scheme: |config| {
                let tls =
                    config.section::<MaestroConfig>().is_ok_and(|config| config.grpc_cert_file.is_some());
                if tls { "https" } else { "http" }
            },
            debug: Some(DebugListener {
                key: "maestro.debug_grpc_listen",
                address: |config| Ok(config.section::<MaestroConfig>()?.debug_grpc_listen),
                scheme: "https",
            }),
        },
    ],
    needs: &[Need::Store],
    deployment,
    beside: None,
    start: |mut context| {
        let ports = MaestroPorts {
            rest: context.listener(REST)?,
            grpc: context.listener(GRPC)?,
            store: context.store()?,
            resolve: context.resolve.clone(),
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<MaestroServer>(ports)
    },
};

/// The listener of the REST API.
const REST: &str = "http";
/// The listener for sources.
const GRPC: &str = "grpc";
/// Where the pod finds its certificate for the broker, and the one for sources.
const BROKER_TLS: &str = "/etc/aro/tls";
const GRPC_TLS: &str = "/etc/aro/grpc-tls";
/// The name of Deployment and Service.
const NAME: &str = "maestro";

fn deployment(cluster: &RegionCluster<'_>) -> Option<RoleDeployment> {
    if !cluster.is_service() {
        return None;
    }
    let broker = ["BROKER_CERT_FILE", "BROKER_KEY_FILE", "BROKER_CA_FILE"];
    let sources = ["GRPC_CERT_FILE", "GRPC_KEY_FILE", "GRPC_CLIENT_CA_FILE"];
    let consumers: Vec<&str> = cluster.management_clusters().collect();
    let mut env = certificate_files(BROKER_TLS, "MAESTRO", broker);
    env.extend(certificate_files(GRPC_TLS, "MAESTRO", sources));
    env.push(("ARO_MAESTRO__BROKER".to_owned(), services::BROKER.to_owned()));
    env.push(("ARO_MAESTRO__CONSUMERS".to_owned(), json!(consumers).to_string()));
    // Clusters Service is one source for each provision shard.
    env.push(("ARO_MAESTRO__GRPC_SOURCES".to_owned(), json!(["clusters-service:*"]).to_string()));
    Some(RoleDeployment {
        env,
        certificates: vec![
            Certificate {
                secret: "maestro-server-tls",
                path: BROKER_TLS,
                issuer: Issuer::Broker,
                // The broker grants the server's topics by this name.
                common_name: "maestro".to_owned(),
                services: Vec::new(),
                usage: CertificateUsage::Client,
            },
            Certificate {
                secret: "maestro-grpc-tls",
                path: GRPC_TLS,
                issuer: Issuer::Sources,
                common_name: "maestro".to_owned(),
                services: vec![NAME],
                usage: CertificateUsage::Server,
            },
        ],
        ..RoleDeployment::new("maestro", NAME)
    })
}
