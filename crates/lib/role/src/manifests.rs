//! A role's Deployment as Kubernetes objects.

use serde_json::{Value, json};

use crate::deployment::{Certificate, RoleDeployment, UpdateStrategy};
use crate::descriptor::RoleDescriptor;

/// The label of every object that belongs to the region, as a selector.
pub const PART_OF_REGION: &str = "app.kubernetes.io/part-of=aro-region";

fn labels() -> Value {
    let (name, value) = PART_OF_REGION.split_once('=').unwrap_or_default();
    json!({name: value})
}

/// A namespace of the region.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels()}})
}

/// A role's ServiceAccount, its permissions, its Deployment and its Service.
pub fn workload(role: &RoleDescriptor, deployment: &RoleDeployment, version: &str) -> Vec<Value> {
    let RoleDeployment { namespace, name, .. } = *deployment;
    let metadata = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels()});
    let select = json!({"app": name});
    let mut objects =
        vec![json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(role.name)})];
    if deployment.cluster_admin {
        objects.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("aro:{}", role.name), "labels": labels()},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": role.name}],
        }));
    }
    objects.push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name),
        "spec": {
            "selector": {"matchLabels": select},
            "strategy": strategy(deployment.update),
            "template": {"metadata": {"labels": select}, "spec": pod(role, deployment, version)},
        },
    }));
    if !role.listeners.is_empty() {
        let ports = role.listeners.iter().map(|listener| {
            json!({"name": listener.name, "port": listener.port, "targetPort": listener.port, "protocol": "TCP"})
        });
        objects.push(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
            "spec": {"selector": select, "ports": ports.collect::<Vec<_>>()},
        }));
    }
    objects
}

fn strategy(update: UpdateStrategy) -> Value {
    match update {
        UpdateStrategy::Recreate => json!({"type": "Recreate"}),
        UpdateStrategy::Rolling => {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        }
    }
}

fn pod(role: &RoleDescriptor, deployment: &RoleDeployment, version: &str) -> Value {
    let ports = role
        .listeners
        .iter()
        .map(|listener| json!({"name": listener.name, "containerPort": listener.port, "protocol": "TCP"}));
    let env = deployment.env.iter().map(|(name, value)| json!({"name": name, "value": value}));
    let mut container = json!({
        "name": deployment.name,
        "image": format!("{}:{version}", role.image()),
        "imagePullPolicy": "IfNotPresent",
        "ports": ports.collect::<Vec<_>>(),
        "env": env.collect::<Vec<_>>(),
    });
    let mut pod = json!({"serviceAccountName": role.name});
    if !deployment.certificates.is_empty() {
        let (mounts, volumes): (Vec<Value>, Vec<Value>) = deployment.certificates.iter().map(mount).unzip();
        container["volumeMounts"] = json!(mounts);
        pod["volumes"] = json!(volumes);
    }
    pod["containers"] = json!([container]);
    pod
}

/// The volume mount and the volume of a certificate.
fn mount(certificate: &Certificate) -> (Value, Value) {
    let volume = certificate.path.rsplit('/').next().unwrap_or_default();
    (
        json!({"name": volume, "mountPath": certificate.path, "readOnly": true}),
        json!({"name": volume, "secret": {"secretName": certificate.secret}}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CertificateUsage, Issuer, ListenerDescriptor};

    const ROLE: RoleDescriptor = RoleDescriptor {
        name: "scratch",
        about: "A role of this test.",
        command: "scratch",
        group: None,
        section: |schema| schema,
        listeners: &[ListenerDescriptor {
            name: "http",
            port: 8080,
            endpoint: "scratch",
            about: "An API.",
            key: "scratch.listen",
            address: |_| Ok(([127, 0, 0, 1], 0).into()),
            scheme: |_| "http",
            debug: None,
        }],
        needs: &[],
        deployment: |_| None,
        beside: None,
        start: |_| Ok(()),
    };

    fn kinds(objects: &[Value]) -> Vec<&str> {
        objects.iter().filter_map(|object| object["kind"].as_str()).collect()
    }

    #[test]
    fn a_role_that_listens_gets_a_service_with_the_ports_of_its_descriptor() {
        let objects = workload(&ROLE, &RoleDeployment::new("scratch-ns", "scratch-svc"), "1.0");
        assert_eq!(kinds(&objects), ["ServiceAccount", "Deployment", "Service"]);
        assert_eq!(objects[2]["spec"]["ports"][0]["port"], 8080);
        let container = &objects[1]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "aro/scratch:1.0");
        assert_eq!(container["ports"][0]["containerPort"], 8080);
        let silent = RoleDescriptor { listeners: &[], ..ROLE };
        let objects = workload(&silent, &RoleDeployment::new("scratch-ns", "scratch"), "1.0");
        assert_eq!(kinds(&objects), ["ServiceAccount", "Deployment"]);
    }

    #[test]
    fn replicas_are_left_to_the_operator_who_scales() {
        for object in workload(&ROLE, &RoleDeployment::new("ns", "name"), "1.0") {
            assert!(object.pointer("/spec/replicas").is_none(), "{object}");
        }
    }

    #[test]
    fn certificates_are_mounted_read_only_from_their_secrets() {
        let certificate = Certificate {
            secret: "scratch-tls",
            path: "/etc/aro/tls",
            issuer: Issuer::Broker,
            common_name: "scratch".to_owned(),
            services: Vec::new(),
            usage: CertificateUsage::Client,
        };
        let deployment =
            RoleDeployment { certificates: vec![certificate], ..RoleDeployment::new("ns", "name") };
        let objects = workload(&ROLE, &deployment, "1.0");
        let pod = &objects[1]["spec"]["template"]["spec"];
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], "scratch-tls");
        assert_eq!(
            pod["containers"][0]["volumeMounts"],
            json!([{"name": "tls", "mountPath": "/etc/aro/tls", "readOnly": true}])
        );
    }

    #[test]
    fn only_a_role_that_asks_for_it_is_cluster_admin() {
        let plain = workload(&ROLE, &RoleDeployment::new("ns", "name"), "1.0");
        assert!(!kinds(&plain).contains(&"ClusterRoleBinding"));
        let admin = RoleDeployment { cluster_admin: true, ..RoleDeployment::new("ns", "name") };
        let objects = workload(&ROLE, &admin, "1.0");
        let binding = objects.iter().find(|object| object["kind"] == "ClusterRoleBinding").unwrap();
        assert_eq!(
            binding["subjects"][0],
            json!({"kind": "ServiceAccount", "namespace": "ns", "name": "scratch"})
        );
    }
}
