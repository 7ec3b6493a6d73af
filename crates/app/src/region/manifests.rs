//! What a region consists of. Names are those of the service.

use aro_crds::definitions;
use serde_json::{Value, json};

use crate::images::{BROKER_PORT, FRONTEND_PORT, MAESTRO_GRPC_PORT, MAESTRO_PORT, REPOSITORY};

/// The cluster the region's own services live in.
pub(crate) const SERVICE_CLUSTER: &str = "svc";
/// Clusters that hosted control planes live in begin so.
const MANAGEMENT_CLUSTER: &str = "mgmt-";
/// What is part of the region says so.
pub(super) const LABEL: &str = "app.kubernetes.io/part-of=aro-region";
/// The front end's namespace and Service.
pub(crate) const FRONTEND: (&str, &str) = ("aro-hcp", "aro-hcp-frontend");
/// Maestro's namespace and Service.
pub(crate) const MAESTRO: (&str, &str) = ("maestro", "maestro");
/// The broker's Service, in Maestro's namespace.
pub(super) const BROKER: &str = "maestro-broker";
/// Where the work agent of `local-cluster` runs.
const MCE: &str = "multicluster-engine";
/// Where works for a management cluster lie.
const LOCAL_CLUSTER: &str = "local-cluster";
/// Where a pod finds its certificates: by what they are for.
const TLS: &str = "/etc/aro/tls";
const DOOR: &str = "/etc/aro/door";

/// Secrets with certificates of the region's authorities.
pub(super) const BROKER_TLS: &str = "maestro-broker-tls";
pub(super) const SERVER_TLS: &str = "maestro-server-tls";
pub(super) const DOOR_TLS: &str = "maestro-grpc-tls";
pub(super) const AGENT_TLS: &str = "maestro-agent-tls";

/// The manifests of one cluster, in the order in which they are applied.
#[derive(Debug, Default)]
pub(super) struct Manifests {
    /// What others need to be there first.
    pub first: Vec<Value>,
    /// The roles.
    pub roles: Vec<Value>,
}

/// Whether a cluster is one that hosted control planes live in.
pub(super) fn is_management(cluster: &str) -> bool {
    cluster.starts_with(MANAGEMENT_CLUSTER)
}

/// The manifests of each cluster there is.
pub(super) fn all(clusters: &[String]) -> Vec<(String, Manifests)> {
    let mut all = Vec::new();
    for name in clusters {
        if name == SERVICE_CLUSTER {
            all.push((name.clone(), service_cluster(clusters)));
        } else if is_management(name) {
            all.push((name.clone(), management_cluster(name)));
        }
    }
    all
}

fn service_cluster(clusters: &[String]) -> Manifests {
    let consumers: Vec<&String> = clusters.iter().filter(|name| is_management(name)).collect();
    let frontend =
        Pod { service: &[("http", FRONTEND_PORT)], ..Pod::new(FRONTEND.0, FRONTEND.1, "frontend") };
    let broker = Pod {
        service: &[("mqtts", BROKER_PORT)],
        secrets: &[(TLS, BROKER_TLS)],
        env: files(TLS, "BROKER", ["CERT_FILE", "KEY_FILE", "CLIENT_CA_FILE"]),
        // Two at a time would each serve half of the clients.
        replace: true,
        ..Pod::new(MAESTRO.0, BROKER, "broker")
    };
    let mut env = files(TLS, "MAESTRO", ["BROKER_CERT_FILE", "BROKER_KEY_FILE", "BROKER_CA_FILE"]);
    env.extend(files(DOOR, "MAESTRO", ["GRPC_CERT_FILE", "GRPC_KEY_FILE", "GRPC_CLIENT_CA_FILE"]));
    env.push(("ARO_MAESTRO__BROKER".to_owned(), broker_address()));
    env.push(("ARO_MAESTRO__CONSUMERS".to_owned(), json!(consumers).to_string()));
    let server = Pod {
        service: &[("http", MAESTRO_PORT), ("grpc", MAESTRO_GRPC_PORT)],
        secrets: &[(TLS, SERVER_TLS), (DOOR, DOOR_TLS)],
        env,
        ..Pod::new(MAESTRO.0, MAESTRO.1, "maestro-server")
    };
    let mut roles = frontend.manifests();
    roles.extend(broker.manifests());
    roles.extend(server.manifests());
    Manifests { first: [FRONTEND.0, MAESTRO.0].map(of_namespace).to_vec(), roles }
}

fn management_cluster(name: &str) -> Manifests {
    let mut env = files(TLS, "MAESTRO_AGENT", ["CERT_FILE", "KEY_FILE", "CA_FILE"]);
    env.push(("ARO_MAESTRO_AGENT__CONSUMER".to_owned(), name.to_owned()));
    env.push(("ARO_MAESTRO_AGENT__BROKER".to_owned(), broker_address()));
    // The records of what was applied must not depend on where the broker is.
    env.push(("ARO_MAESTRO_AGENT__HUB_ID".to_owned(), "maestro".to_owned()));
    let agent = Pod {
        secrets: &[(TLS, AGENT_TLS)],
        env,
        replace: true,
        rules: true,
        ..Pod::new(MAESTRO.0, "maestro-agent", "maestro-agent")
    };
    let mce = Pod { replace: true, rules: true, ..Pod::new(MCE, MCE, "mce") };
    let mut first = [MAESTRO.0, MCE, LOCAL_CLUSTER].map(of_namespace).to_vec();
    first.extend(definitions().iter().filter_map(|one| serde_json::to_value(one.object()).ok()));
    let mut roles = agent.manifests();
    roles.extend(mce.manifests());
    Manifests { first, roles }
}

/// The broker as everybody in the region finds it.
fn broker_address() -> String {
    format!("{BROKER}.{}.svc:{BROKER_PORT}", MAESTRO.0)
}

/// Where certificate, key and authorities are, as settings of a role.
fn files(dir: &str, section: &str, keys: [&str; 3]) -> Vec<(String, String)> {
    let names = ["tls.crt", "tls.key", "ca.crt"];
    let pairs = keys.into_iter().zip(names);
    pairs.map(|(key, file)| (format!("ARO_{section}__{key}"), format!("{dir}/{file}"))).collect()
}

fn labels() -> Value {
    let (name, value) = LABEL.split_once('=').unwrap_or_default();
    json!({name: value})
}

fn of_namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels()}})
}

/// A role: its account, its Deployment, its Service. The number of replicas is left to whoever scales it.
struct Pod<'a> {
    namespace: &'a str,
    name: &'a str,
    image: &'a str,
    /// Ports by name, for a Service of the role's name.
    service: &'a [(&'a str, u16)],
    env: Vec<(String, String)>,
    /// Secrets with its certificates, and where they are mounted.
    secrets: &'a [(&'a str, &'a str)],
    /// The old one goes before the new one comes.
    replace: bool,
    /// It may do anything in its cluster.
    rules: bool,
}

impl<'a> Pod<'a> {
    fn new(namespace: &'a str, name: &'a str, image: &'a str) -> Self {
        Self {
            namespace,
            name,
            image,
            service: &[],
            env: Vec::new(),
            secrets: &[],
            replace: false,
            rules: false,
        }
    }

    fn manifests(&self) -> Vec<Value> {
        let Self { namespace, name, image, .. } = *self;
        let metadata = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels()});
        let select = json!({"app": name});
        let mut all =
            vec![json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(image)})];
        if self.rules {
            all.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("aro:{image}"), "labels": labels()},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": image}],
            }));
        }
        let strategy = if self.replace {
            json!({"type": "Recreate"})
        } else {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        };
        all.push(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name),
            "spec": {
                "selector": {"matchLabels": select},
                "strategy": strategy,
                "template": {"metadata": {"labels": select}, "spec": self.pod()},
            },
        }));
        if !self.service.is_empty() {
            let ports = self.service.iter().map(
                |(name, port)| json!({"name": name, "port": port, "targetPort": port, "protocol": "TCP"}),
            );
            all.push(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
                "spec": {"selector": select, "ports": ports.collect::<Vec<_>>()},
            }));
        }
        all
    }

    fn pod(&self) -> Value {
        let ports = self
            .service
            .iter()
            .map(|(name, port)| json!({"name": name, "containerPort": port, "protocol": "TCP"}));
        let env = self.env.iter().map(|(name, value)| json!({"name": name, "value": value}));
        let mut container = json!({
            "name": self.name,
            "image": format!("{REPOSITORY}{}:{}", self.image, env!("CARGO_PKG_VERSION")),
            "imagePullPolicy": "IfNotPresent",
            "ports": ports.collect::<Vec<_>>(),
            "env": env.collect::<Vec<_>>(),
        });
        let mut pod = json!({"serviceAccountName": self.image});
        if !self.secrets.is_empty() {
            let of = |(path, secret): &(&str, &str)| {
                let volume = path.rsplit('/').next().unwrap_or_default();
                let mount = json!({"name": volume, "mountPath": path, "readOnly": true});
                (mount, json!({"name": volume, "secret": {"secretName": secret}}))
            };
            let (mounts, volumes): (Vec<Value>, Vec<Value>) = self.secrets.iter().map(of).unzip();
            container["volumeMounts"] = json!(mounts);
            pod["volumes"] = json!(volumes);
        }
        pod["containers"] = json!([container]);
        pod
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_says_what_it_is_and_nobody_loses_a_scale() {
        let all = all(&["svc".to_owned(), "mgmt-1".to_owned(), "hive".to_owned()]);
        assert_eq!(all.iter().map(|(cluster, _)| cluster.as_str()).collect::<Vec<_>>(), ["svc", "mgmt-1"]);
        for manifest in all.iter().flat_map(|(_, all)| all.first.iter().chain(&all.roles)) {
            for path in ["/apiVersion", "/kind", "/metadata/name"] {
                assert!(manifest.pointer(path).is_some(), "{path} of {manifest}");
            }
            assert!(manifest.pointer("/spec/replicas").is_none());
        }
    }

    #[test]
    fn a_management_cluster_knows_works_before_anybody_asks_for_one() {
        let manifests = management_cluster("mgmt-1");
        let kinds: Vec<&str> = manifests.first.iter().filter_map(|one| one["kind"].as_str()).collect();
        assert!(kinds.contains(&"CustomResourceDefinition") && kinds.contains(&"Namespace"));
        let names: Vec<&str> =
            manifests.first.iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
        assert!(names.contains(&"manifestworks.work.open-cluster-management.io"), "{names:?}");
        assert!(names.contains(&"local-cluster"));
    }
}
