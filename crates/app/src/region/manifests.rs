//! What a region consists of. Names are those of the service.

use serde_json::{Value, json};

use crate::images::{FRONTEND_PORT, REPOSITORY};

/// The cluster the region's own services live in.
pub(super) const SERVICE_CLUSTER: &str = "svc";
/// What is part of the region says so.
pub(super) const LABEL: &str = "app.kubernetes.io/part-of=aro-region";
/// The front end's namespace and Service.
pub(crate) const FRONTEND: (&str, &str) = ("aro-hcp", "aro-hcp-frontend");

/// The manifests of each cluster there is, in the order in which they are applied.
pub(super) fn all(clusters: &[String]) -> Vec<(String, Vec<Value>)> {
    let service_cluster = clusters.iter().filter(|name| *name == SERVICE_CLUSTER);
    service_cluster.map(|name| (name.clone(), service_cluster_manifests())).collect()
}

fn service_cluster_manifests() -> Vec<Value> {
    let (namespace, name) = FRONTEND;
    let mut manifests = vec![of_namespace(namespace)];
    manifests.extend(role(namespace, name, "frontend", FRONTEND_PORT));
    manifests
}

fn labels() -> Value {
    let (name, value) = LABEL.split_once('=').unwrap_or_default();
    json!({name: value})
}

fn of_namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels()}})
}

/// A role: its account, its Deployment, its Service. The number of replicas is left to whoever scales it.
fn role(namespace: &str, name: &str, image: &str, port: u16) -> [Value; 3] {
    let metadata = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels()});
    let select = json!({"app": name});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(image)}),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name),
            "spec": {
                "selector": {"matchLabels": select},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": select},
                    "spec": {
                        "serviceAccountName": image,
                        "containers": [{
                            "name": name,
                            "image": format!("{REPOSITORY}{image}:{}", env!("CARGO_PKG_VERSION")),
                            "imagePullPolicy": "IfNotPresent",
                            "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
                        }],
                    },
                },
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
            "spec": {
                "selector": select,
                "ports": [{"name": "http", "port": port, "targetPort": port, "protocol": "TCP"}],
            },
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_says_what_it_is_and_nobody_loses_a_scale() {
        let all = all(&["svc".to_owned(), "mgmt-1".to_owned()]);
        assert_eq!(all.iter().map(|(cluster, _)| cluster.as_str()).collect::<Vec<_>>(), ["svc"]);
        for manifest in all.iter().flat_map(|(_, manifests)| manifests) {
            for path in ["/apiVersion", "/kind", "/metadata/name", "/metadata/labels"] {
                assert!(manifest.pointer(path).is_some(), "{path} of {manifest}");
            }
            assert!(manifest.pointer("/spec/replicas").is_none());
        }
    }
}
