//! The agent as the program knows it.

use aro_role::{
    Certificate, CertificateUsage, CommandGroup, Issuer, Need, RegionCluster, RoleDeployment, RoleDescriptor,
    UpdateStrategy, certificate_files, services,
};
use aro_runtime::Role as _;

use crate::config::MaestroAgentConfig;
use crate::{MaestroAgent, MaestroAgentPorts};

/// The role's descriptor.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: MaestroAgent::NAME,
    about: "Run the agent of a management cluster alone",
    command: "agent",
    group: Some(CommandGroup { name: "maestro", about: "Manifests over MQTT" }),
    section: |schema| schema.with::<MaestroAgentConfig>(),
    listeners: &[],
    needs: &[Need::Store, Need::Cluster],
    deployment,
    beside: None,
    start: |context| {
        let ports = MaestroAgentPorts {
            client: context.cluster()?.client,
            store: context.store()?,
            resolve: context.resolve.clone(),
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<MaestroAgent>(ports)
    },
};

/// Where the pod finds its certificate.
const TLS: &str = "/etc/aro/tls";

fn deployment(cluster: &RegionCluster<'_>) -> Option<RoleDeployment> {
    if !cluster.is_management() {
        return None;
    }
    let mut env = certificate_files(TLS, "MAESTRO_AGENT", ["CERT_FILE", "KEY_FILE", "CA_FILE"]);
    env.push(("ARO_MAESTRO_AGENT__CONSUMER".to_owned(), cluster.name.to_owned()));
    env.push(("ARO_MAESTRO_AGENT__BROKER".to_owned(), services::BROKER.to_owned()));
    // Records of applied manifests must not depend on the broker's address.
    env.push(("ARO_MAESTRO_AGENT__HUB_ID".to_owned(), "maestro".to_owned()));
    Some(RoleDeployment {
        env,
        certificates: vec![Certificate {
            secret: "maestro-agent-tls",
            path: TLS,
            issuer: Issuer::Broker,
            // The broker grants the topics of the consumer with this name.
            common_name: cluster.name.to_owned(),
            services: Vec::new(),
            usage: CertificateUsage::Client,
        }],
        update: UpdateStrategy::Recreate,
        cluster_admin: true,
        ..RoleDeployment::new("maestro", "maestro-agent")
    })
}
