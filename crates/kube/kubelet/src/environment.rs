//! The environment of a container.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};
use kube::ResourceExt as _;

use crate::sources::Sources;

/// What only the kubelet knows about a pod.
pub struct Place<'a> {
    pub address: &'a str,
    pub host: &'a str,
}

/// Why there is no environment: a server that does not answer, or something that is not there.
pub enum Trouble {
    Server(kube::Error),
    Missing(String),
}

impl From<kube::Error> for Trouble {
    fn from(error: kube::Error) -> Self {
        Self::Server(error)
    }
}

/// All variables of a container; later ones win over earlier ones, and may refer to them as `$(NAME)`.
pub async fn resolve(
    pod: &Pod,
    container: &Container,
    place: &Place<'_>,
    sources: &Sources,
) -> Result<BTreeMap<String, String>, Trouble> {
    let namespace = pod.namespace().unwrap_or_default();
    let mut variables = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        if let Some(wanted) = &source.config_map_ref {
            match sources.config_map(&namespace, &wanted.name).await? {
                Some(map) => {
                    variables.extend(
                        map.data.into_iter().flatten().map(|(key, value)| (format!("{prefix}{key}"), value)),
                    );
                }
                None if wanted.optional == Some(true) => {}
                None => return Err(Trouble::Missing(format!("configmap \"{}\" not found", wanted.name))),
            }
        }
        if let Some(wanted) = &source.secret_ref {
            match sources.secret(&namespace, &wanted.name).await? {
                Some(secret) => {
                    let data = secret.data.into_iter().flatten();
                    variables.extend(data.map(|(key, value)| (format!("{prefix}{key}"), text(&value.0))));
                }
                None if wanted.optional == Some(true) => {}
                None => return Err(Trouble::Missing(format!("secret \"{}\" not found", wanted.name))),
            }
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) => Some(expand(value, &variables)),
            (None, Some(from)) => from_source(pod, &namespace, from, place, sources).await?,
            (None, None) => Some(String::new()),
        };
        if let Some(value) = value {
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

async fn from_source(
    pod: &Pod,
    namespace: &str,
    from: &EnvVarSource,
    place: &Place<'_>,
    sources: &Sources,
) -> Result<Option<String>, Trouble> {
    if let Some(field) = &from.field_ref {
        return field_of(pod, &field.field_path, place)
            .map(Some)
            .ok_or_else(|| Trouble::Missing(format!("unsupported fieldPath: {}", field.field_path)));
    }
    if let Some(wanted) = &from.secret_key_ref {
        let secret = sources.secret(namespace, &wanted.name).await?;
        let there = secret.is_some();
        let value = secret.and_then(|secret| secret.data?.remove(&wanted.key)).map(|value| text(&value.0));
        return or_missing(value, wanted.optional, "secret", &wanted.name, &wanted.key, there, namespace);
    }
    if let Some(wanted) = &from.config_map_key_ref {
        let map = sources.config_map(namespace, &wanted.name).await?;
        let there = map.is_some();
        let value = map.and_then(|map| map.data?.remove(&wanted.key));
        return or_missing(value, wanted.optional, "configmap", &wanted.name, &wanted.key, there, namespace);
    }
    // Resource fields: nothing here has limits of its own.
    Ok(Some("0".to_owned()))
}

fn or_missing(
    value: Option<String>,
    optional: Option<bool>,
    kind: &str,
    name: &str,
    key: &str,
    there: bool,
    namespace: &str,
) -> Result<Option<String>, Trouble> {
    if value.is_some() || optional == Some(true) {
        return Ok(value);
    }
    Err(Trouble::Missing(if there {
        format!("couldn't find key {key} in {kind} {namespace}/{name}")
    } else {
        format!("{kind} \"{name}\" not found")
    }))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A field of the pod that containers may be told.
pub fn field_of(pod: &Pod, path: &str, place: &Place<'_>) -> Option<String> {
    let subscript = |prefix: &str| path.strip_prefix(prefix)?.strip_prefix("['")?.strip_suffix("']");
    if let Some(label) = subscript("metadata.labels") {
        return Some(pod.labels().get(label).cloned().unwrap_or_default());
    }
    if let Some(annotation) = subscript("metadata.annotations") {
        return Some(pod.annotations().get(annotation).cloned().unwrap_or_default());
    }
    let spec = pod.spec.as_ref();
    Some(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => listed(pod.labels()),
        "metadata.annotations" => listed(pod.annotations()),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
        "spec.serviceAccountName" => {
            spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()
        }
        "status.podIP" | "status.podIPs" => place.address.to_owned(),
        "status.hostIP" | "status.hostIPs" => place.host.to_owned(),
        _ => return None,
    })
}

fn listed(all: &BTreeMap<String, String>) -> String {
    all.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
}

/// Replaces `$(NAME)` by what is known; `$$` is one `$`, and what is not known stays.
pub fn expand(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
            match known.get(name) {
                Some(value) => out.push_str(value),
                None => out.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_and_dollars_can_be_escaped() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$(A)".to_owned())]);
        for (text, expected) in [
            ("$(A)-$(A)", "1-1"),
            ("$(B)", "$(A)"),
            ("$(UNKNOWN)", "$(UNKNOWN)"),
            ("$$(A)", "$(A)"),
            ("$A $ $(", "$A $ $("),
            ("", ""),
        ] {
            assert_eq!(expand(text, &known), expected, "{text}");
        }
    }

    #[test]
    fn fields_of_the_pod_are_told_by_path() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "x"}}, "spec": {"containers": [], "nodeName": "node"},
        }))
        .unwrap();
        let place = Place { address: "10.0.0.1", host: "127.0.0.1" };
        for (path, expected) in [
            ("metadata.name", Some("p")),
            ("metadata.labels['app']", Some("x")),
            ("metadata.labels['none']", Some("")),
            ("metadata.labels", Some("app=\"x\"")),
            ("spec.nodeName", Some("node")),
            ("status.podIP", Some("10.0.0.1")),
            ("status.phase", None),
        ] {
            assert_eq!(field_of(&pod, path, &place).as_deref(), expected, "{path}");
        }
    }
}
