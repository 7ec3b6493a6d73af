//! The broker as the program knows it.

use aro_role::{
    Certificate, CertificateUsage, Issuer, ListenerDescriptor, RegionCluster, RoleDeployment, RoleDescriptor,
    UpdateStrategy, certificate_files,
};
use aro_runtime::Role as _;

use crate::config::BrokerConfig;
use crate::{Broker, BrokerPorts};

/// The role's descriptor.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Broker::NAME,
    about: "Run the embedded MQTT broker alone",
    command: "broker",
    group: None,
    section: |schema| schema.with::<BrokerConfig>(),
    listeners: &[ListenerDescriptor {
        name: MQTTS,
        port: 8883,
        endpoint: "broker",
        about: "MQTT v5 broker",
        key: "broker.listen",
        address: |config| Ok(config.section::<BrokerConfig>()?.listen),
        scheme: |config| {
            let tls = config.section::<BrokerConfig>().is_ok_and(|config| config.cert_file.is_some());
            if tls { "mqtts" } else { "mqtt" }
        },
        debug: None,
    }],
    needs: &[],
    deployment,
    beside: None,
    start: |mut context| {
        let ports = BrokerPorts {
            listener: context.listener(MQTTS)?,
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Broker>(ports)
    },
};

/// The listener for clients.
const MQTTS: &str = "mqtts";
/// Where the pod finds its certificate.
const TLS: &str = "/etc/aro/tls";
/// The name of Deployment and Service.
const NAME: &str = "maestro-broker";

fn deployment(cluster: &RegionCluster<'_>) -> Option<RoleDeployment> {
    cluster.is_service().then(|| RoleDeployment {
        env: certificate_files(TLS, "BROKER", ["CERT_FILE", "KEY_FILE", "CLIENT_CA_FILE"]),
        certificates: vec![Certificate {
            secret: "maestro-broker-tls",
            path: TLS,
            issuer: Issuer::Broker,
            common_name: NAME.to_owned(),
            services: vec![NAME],
            usage: CertificateUsage::Server,
        }],
        // Two brokers at once would each serve a part of the clients.
        update: UpdateStrategy::Recreate,
        ..RoleDeployment::new("maestro", NAME)
    })
}
