//! What a pod needs, and what volumes need. Pure.

use aro_kube_apimachinery::meta;
use serde_json::Value;

/// What kind of object is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Pod,
    Secret,
    ConfigMap,
    Claim,
    Volume,
    ResourceClaim,
    Account,
    Attachment,
    Slice,
}

/// An object that a node needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Reference {
    pub(super) kind: Kind,
    /// As it is stored: `namespace/name`, or `name`.
    pub(super) key: Box<str>,
}

impl Reference {
    pub(super) fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        let key = if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() };
        Self { kind, key }
    }
}

fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    meta::get(value, path).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn list<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    meta::get(value, path).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn is_mirror(pod: &Value) -> bool {
    meta::annotations(pod).is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"))
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|name| list(pod, &["spec", name]))
}

/// Names of secrets a pod needs itself.
pub(super) fn secrets(pod: &Value) -> Vec<&str> {
    let pull = list(pod, &["spec", "imagePullSecrets"]).filter_map(|secret| text(secret, &["name"]));
    let environment =
        containers(pod).flat_map(|container| environment(container, "secretRef", "secretKeyRef"));
    let volumes = list(pod, &["spec", "volumes"]).flat_map(|volume| {
        let referred = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];
        let referred = referred.into_iter().filter_map(|source| text(volume, &[source, "secretRef", "name"]));
        let own = [
            &["azureFile", "secretName"][..],
            &["secret", "secretName"],
            &["csi", "nodePublishSecretRef", "name"],
        ];
        let own = own.into_iter().filter_map(|path| text(volume, path));
        let projected =
            list(volume, &["projected", "sources"]).filter_map(|source| text(source, &["secret", "name"]));
        referred.chain(own).chain(projected)
    });
    pull.chain(environment).chain(volumes).collect()
}

/// Names of config maps a pod needs.
pub(super) fn config_maps(pod: &Value) -> Vec<&str> {
    let environment =
        containers(pod).flat_map(|container| environment(container, "configMapRef", "configMapKeyRef"));
    let volumes = list(pod, &["spec", "volumes"]).flat_map(|volume| {
        let projected =
            list(volume, &["projected", "sources"]).filter_map(|source| text(source, &["configMap", "name"]));
        text(volume, &["configMap", "name"]).into_iter().chain(projected)
    });
    environment.chain(volumes).collect()
}

fn environment<'a>(
    container: &'a Value,
    all: &'static str,
    one: &'static str,
) -> impl Iterator<Item = &'a str> {
    let whole = list(container, &["envFrom"]).filter_map(move |from| text(from, &[all, "name"]));
    let single =
        list(container, &["env"]).filter_map(move |variable| text(variable, &["valueFrom", one, "name"]));
    whole.chain(single)
}

fn claims(pod: &Value) -> Vec<String> {
    let name = meta::name(pod);
    let claim = |volume: &Value| {
        let own = text(volume, &["persistentVolumeClaim", "claimName"]).map(str::to_owned);
        // A claim that is made for the pod is named after it and the volume.
        own.or_else(|| {
            volume.get("ephemeral").and(text(volume, &["name"])).map(|volume| format!("{name}-{volume}"))
        })
    };
    list(pod, &["spec", "volumes"]).filter_map(claim).collect()
}

fn resource_claims(pod: &Value) -> Vec<&str> {
    let made = || list(pod, &["status", "resourceClaimStatuses"]);
    let named = list(pod, &["spec", "resourceClaims"]).filter_map(|claim| {
        text(claim, &["resourceClaimName"]).or_else(|| {
            let status = made().find(|status| text(status, &["name"]) == text(claim, &["name"]))?;
            text(status, &["resourceClaimName"])
        })
    });
    named.chain(text(pod, &["status", "extendedResourceClaimStatus", "resourceClaimName"])).collect()
}

/// Everything a pod needs, and the pod itself. One that only mirrors what a node runs by itself gives it nothing.
pub(super) fn of_pod(pod: &Value) -> Vec<Reference> {
    let namespace = meta::namespace(pod);
    let of = |kind, name: &str| Reference::new(kind, namespace, name);
    let mut all = vec![of(Kind::Pod, meta::name(pod))];
    if is_mirror(pod) {
        return all;
    }
    all.extend(text(pod, &["spec", "serviceAccountName"]).map(|name| of(Kind::Account, name)));
    all.extend(secrets(pod).into_iter().map(|name| of(Kind::Secret, name)));
    all.extend(config_maps(pod).into_iter().map(|name| of(Kind::ConfigMap, name)));
    all.extend(claims(pod).iter().map(|name| of(Kind::Claim, name)));
    all.extend(resource_claims(pod).into_iter().map(|name| of(Kind::ResourceClaim, name)));
    all
}

/// The claim a volume belongs to.
pub(super) fn claim_of(volume: &Value) -> Option<Reference> {
    let name = text(volume, &["spec", "claimRef", "name"])?;
    Some(Reference::new(Kind::Claim, text(volume, &["spec", "claimRef", "namespace"])?, name))
}

/// Secrets a node needs to mount a volume.
pub(super) fn secrets_of_volume(volume: &Value) -> Vec<Reference> {
    let claimed = text(volume, &["spec", "claimRef", "namespace"]).unwrap_or_default();
    let secret = |reference: &Value| {
        let namespace = text(reference, &["namespace"]).unwrap_or(claimed);
        Some(Reference::new(Kind::Secret, namespace, text(reference, &["name"])?))
    };
    let sources = volume.get("spec").and_then(Value::as_object).into_iter().flatten();
    let named = sources.flat_map(|(_, source)| {
        let names = ["secretRef", "nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"];
        names.into_iter().filter_map(|name| source.get(name))
    });
    let mut all: Vec<Reference> = named.filter_map(secret).collect();
    if let Some(name) = text(volume, &["spec", "azureFile", "secretName"]) {
        let namespace = text(volume, &["spec", "azureFile", "secretNamespace"]).unwrap_or(claimed);
        all.push(Reference::new(Kind::Secret, namespace, name));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(references: &[Reference]) -> Vec<String> {
        references.iter().map(|reference| format!("{:?} {}", reference.kind, reference.key)).collect()
    }

    #[test]
    fn everything_a_pod_names_is_found() {
        let pod = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": {
            "serviceAccountName": "sa", "imagePullSecrets": [{"name": "pull"}],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}]}],
            "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s2"}}}, {"valueFrom": {"configMapKeyRef": {"name": "c2"}}}]}],
            "volumes": [
                {"name": "a", "secret": {"secretName": "s3"}}, {"name": "b", "configMap": {"name": "c3"}},
                {"name": "c", "projected": {"sources": [{"secret": {"name": "s4"}}, {"configMap": {"name": "c4"}}]}},
                {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}}, {"name": "e", "ephemeral": {}},
                {"name": "f", "rbd": {"secretRef": {"name": "s5"}}}],
            "resourceClaims": [{"name": "r", "resourceClaimName": "rc"}, {"name": "t"}]},
            "status": {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made"}]}});
        assert_eq!(
            shown(&of_pod(&pod)),
            [
                "Pod ns/p",
                "Account ns/sa",
                "Secret ns/pull",
                "Secret ns/s1",
                "Secret ns/s2",
                "Secret ns/s3",
                "Secret ns/s4",
                "Secret ns/s5",
                "ConfigMap ns/c1",
                "ConfigMap ns/c2",
                "ConfigMap ns/c3",
                "ConfigMap ns/c4",
                "Claim ns/claim",
                "Claim ns/p-e",
                "ResourceClaim ns/rc",
                "ResourceClaim ns/made",
            ]
        );
    }

    #[test]
    fn a_mirror_pod_gives_a_node_nothing() {
        let pod = json!({"metadata": {"name": "p", "namespace": "ns", "annotations": {"kubernetes.io/config.mirror": "x"}},
            "spec": {"serviceAccountName": "sa", "imagePullSecrets": [{"name": "pull"}]}});
        assert_eq!(shown(&of_pod(&pod)), ["Pod ns/p"]);
    }

    #[test]
    fn a_volume_names_its_secrets_and_its_claim() {
        let volume = json!({"spec": {"claimRef": {"namespace": "ns", "name": "c"}, "csi": {"driver": "d",
            "nodePublishSecretRef": {"name": "a", "namespace": "x"}, "controllerPublishSecretRef": {"name": "no", "namespace": "x"}},
            "azureFile": {"secretName": "b"}}});
        assert_eq!(shown(&secrets_of_volume(&volume)), ["Secret x/a", "Secret ns/b"]);
        assert_eq!(shown(&claim_of(&volume).into_iter().collect::<Vec<_>>()), ["Claim ns/c"]);
    }
}
