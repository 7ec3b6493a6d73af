//! What pods refer to: secrets, config maps, tokens, volumes of claims.

use std::collections::HashMap;
use std::time::Duration;

use aro_base::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, EnvFromSource, EnvVar, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount,
    Volume,
};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::status::{init_specs, specs};

/// The two kinds containers get their configuration from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Secret,
    ConfigMap,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
        }
    }
}

/// Something a pod cannot start without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub kind: Kind,
    pub name: String,
    /// The volume it is for; `None`: environment.
    pub volume: Option<String>,
}

/// Everything a pod cannot start without.
pub fn references(pod: &Pod) -> Vec<Reference> {
    let mut found = Vec::new();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    for volume in volumes {
        of_volume(volume, &mut found);
    }
    for container in init_specs(pod).iter().chain(specs(pod)) {
        container.env.iter().flatten().for_each(|variable| of_variable(variable, &mut found));
        container.env_from.iter().flatten().for_each(|source| of_environment(source, &mut found));
    }
    found
}

fn of_volume(volume: &Volume, found: &mut Vec<Reference>) {
    let mut add = |kind, name: Option<&str>, optional: Option<bool>| {
        if let Some(name) = name.filter(|name| !name.is_empty() && optional != Some(true)) {
            found.push(Reference { kind, name: name.to_owned(), volume: Some(volume.name.clone()) });
        }
    };
    if let Some(secret) = &volume.secret {
        add(Kind::Secret, secret.secret_name.as_deref(), secret.optional);
    }
    if let Some(map) = &volume.config_map {
        add(Kind::ConfigMap, Some(&map.name), map.optional);
    }
    for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
        if let Some(secret) = &source.secret {
            add(Kind::Secret, Some(&secret.name), secret.optional);
        }
        if let Some(map) = &source.config_map {
            add(Kind::ConfigMap, Some(&map.name), map.optional);
        }
    }
}

fn of_variable(variable: &EnvVar, found: &mut Vec<Reference>) {
    let Some(from) = &variable.value_from else { return };
    if let Some(key) = from.secret_key_ref.as_ref().filter(|key| key.optional != Some(true)) {
        found.push(Reference { kind: Kind::Secret, name: key.name.clone(), volume: None });
    }
    if let Some(key) = from.config_map_key_ref.as_ref().filter(|key| key.optional != Some(true)) {
        found.push(Reference { kind: Kind::ConfigMap, name: key.name.clone(), volume: None });
    }
}

fn of_environment(source: &EnvFromSource, found: &mut Vec<Reference>) {
    if let Some(secret) = source.secret_ref.as_ref().filter(|secret| secret.optional != Some(true)) {
        found.push(Reference { kind: Kind::Secret, name: secret.name.clone(), volume: None });
    }
    if let Some(map) = source.config_map_ref.as_ref().filter(|map| map.optional != Some(true)) {
        found.push(Reference { kind: Kind::ConfigMap, name: map.name.clone(), volume: None });
    }
}

/// Reads what pods refer to.
pub struct Sources {
    client: Client,
    /// What was there lately; many pods refer to the same things.
    seen: Mutex<HashMap<(Kind, String, String), Instant>>,
}

/// How long something that was there counts as there.
const LATELY: Duration = Duration::from_secs(10);
const REMEMBERED: usize = 10_000;

impl Sources {
    pub fn new(client: Client) -> Self {
        Self { client, seen: Mutex::default() }
    }

    pub async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, kube::Error> {
        Api::namespaced(self.client.clone(), namespace).get_opt(name).await
    }

    pub async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<ConfigMap>, kube::Error> {
        Api::namespaced(self.client.clone(), namespace).get_opt(name).await
    }

    pub async fn exists(&self, kind: Kind, namespace: &str, name: &str) -> Result<bool, kube::Error> {
        let key = (kind, namespace.to_owned(), name.to_owned());
        if self.seen.lock().get(&key).is_some_and(|at| at.elapsed() < LATELY) {
            return Ok(true);
        }
        let there = match kind {
            Kind::Secret => self.secret(namespace, name).await?.is_some(),
            Kind::ConfigMap => self.config_map(namespace, name).await?.is_some(),
        };
        if there {
            let mut seen = self.seen.lock();
            if seen.len() >= REMEMBERED {
                seen.retain(|_, at| at.elapsed() < LATELY);
            }
            seen.insert(key, Instant::now());
        }
        Ok(there)
    }

    /// The first reference that leads nowhere.
    pub async fn missing(&self, pod: &Pod) -> Result<Option<Reference>, kube::Error> {
        let namespace = pod.namespace().unwrap_or_default();
        for reference in references(pod) {
            if !self.exists(reference.kind, &namespace, &reference.name).await? {
                return Ok(Some(reference));
            }
        }
        Ok(None)
    }

    /// A token of the pod's service account, good for this pod only.
    pub async fn token(
        &self,
        pod: &Pod,
        audience: Option<&str>,
        seconds: i64,
    ) -> Result<(String, Timestamp), kube::Error> {
        let namespace = pod.namespace().unwrap_or_default();
        let account =
            pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: Some(audience.map(|audience| vec![audience.to_owned()]).unwrap_or_default()),
                expiration_seconds: Some(seconds),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(pod.name_any()),
                    uid: pod.uid(),
                }),
            }),
            ..TokenRequest::default()
        };
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &namespace);
        let made = api.create_token_request(account, &PostParams::default(), &request).await?;
        let status = made.status.unwrap_or_default();
        let expires = status.expiration_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        Ok((status.token.unwrap_or_default(), expires))
    }

    /// Where the volume of a claim really is; a reason if it is nowhere here.
    pub async fn claim(
        &self,
        namespace: &str,
        claim: &str,
    ) -> Result<Result<BoundClaim, String>, kube::Error> {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let Some(found) = api.get_opt(claim).await? else {
            return Ok(Err(format!("persistentvolumeclaim \"{claim}\" not found")));
        };
        let volume = found.spec.and_then(|spec| spec.volume_name).unwrap_or_default();
        if volume.is_empty() {
            return Ok(Err(format!("persistentvolumeclaim \"{claim}\" is not bound yet")));
        }
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let spec = volumes.get_opt(&volume).await?.and_then(|volume| volume.spec).unwrap_or_default();
        let path = spec.host_path.map(|path| path.path).or_else(|| spec.local.map(|local| local.path));
        Ok(match path {
            Some(path) => Ok(BoundClaim { volume, path }),
            None => Err(format!("volume \"{volume}\" is not a local one")),
        })
    }
}

/// The volume that a claim is bound to.
pub struct BoundClaim {
    /// Its name.
    pub volume: String,
    /// Where it says that its files are.
    pub path: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_a_pod_cannot_do_without_is_found() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {
            "volumes": [
                {"name": "a", "secret": {"secretName": "s1"}},
                {"name": "b", "configMap": {"name": "c1"}},
                {"name": "o", "secret": {"secretName": "not-needed", "optional": true}},
                {"name": "p", "projected": {"sources": [{"secret": {"name": "s2"}}, {"configMap": {"name": "c2", "optional": true}}]}},
                {"name": "e", "emptyDir": {}},
            ],
            "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "c3"}}]}],
            "containers": [{"name": "c", "env": [
                {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}},
                {"name": "Y", "value": "plain"},
            ]}],
        }}))
        .unwrap();
        let names: Vec<String> = references(&pod).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["s1", "c1", "s2", "c3", "s3"]);
    }
}
