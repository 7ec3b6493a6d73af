//! One manifest: prepared for writing, and identified among the others.

use std::sync::Arc;

use aro_crds::work::v1::{AppliedManifestResourceMeta, ManifestResourceMeta, ResourceIdentifier};
use aro_kube::informer::ObjectKey;
use serde_json::Value;

use crate::choice::{Choice, choose, is_owned};
use crate::failure::Failure;
use crate::kinds::{Kind, Kinds};
use crate::memory::entry_of;
use crate::work::Work;

/// What only a server sets. A manifest that was read from a cluster may carry it.
const SET_BY_SERVERS: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Without what is not ours to say: what servers set, and the status.
pub(crate) fn clean(manifest: &mut Value) {
    let Value::Object(members) = manifest else { return };
    members.remove("status");
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        metadata.retain(|name, _| !SET_BY_SERVERS.contains(&name.as_str()));
    }
    without_null_times(manifest);
}

/// Whether [`clean`] leaves it as it is.
pub(crate) fn is_clean(manifest: &Value) -> bool {
    let Value::Object(members) = manifest else { return true };
    let metadata = members.get("metadata").and_then(Value::as_object).into_iter().flatten();
    !members.contains_key("status")
        && metadata.map(|(name, _)| name.as_str()).all(|name| !SET_BY_SERVERS.contains(&name))
        && !has_null_times(manifest)
}

fn has_null_times(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.get("creationTimestamp").is_some_and(Value::is_null)
                || members.values().any(has_null_times)
        }
        Value::Array(items) => items.iter().any(has_null_times),
        _ => false,
    }
}

/// Programs write `creationTimestamp: null` wherever there is metadata.
fn without_null_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("creationTimestamp").is_some_and(Value::is_null) {
                members.remove("creationTimestamp");
            }
            members.values_mut().for_each(without_null_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null_times),
        _ => {}
    }
}

/// A manifest whose resource is known.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    pub(crate) key: ObjectKey,
    pub(crate) choice: Choice,
    /// Whether the object goes with the work.
    pub(crate) owned: bool,
}

impl Target {
    /// What the record says of the object.
    pub(crate) fn applied(&self, uid: &str) -> AppliedManifestResourceMeta {
        entry_of(&self.kind, &self.key, uid)
    }

    /// Whether what follows in the list may need it.
    pub(crate) fn carries_others(&self) -> bool {
        matches!(
            (self.kind.api.group.as_str(), self.kind.api.kind.as_str()),
            ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }
}

/// Whether a record's entry is about the same object, in whatever version.
pub(crate) fn same_object(a: &AppliedManifestResourceMeta, b: &AppliedManifestResourceMeta) -> bool {
    (&a.group, &a.resource, &a.namespace, &a.name) == (&b.group, &b.resource, &b.namespace, &b.name)
}

/// A manifest, and its resource or why that is not known.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) meta: ManifestResourceMeta,
    pub(crate) target: Result<Target, Arc<Failure>>,
}

/// Finds out what a manifest is about.
pub(crate) async fn prepare(work: &Work, ordinal: usize, kinds: &Kinds) -> Prepared {
    let manifest = &work.manifests[ordinal];
    let mut meta = describe(ordinal, manifest);
    let target = match check(manifest) {
        Err(failure) => Err(failure),
        Ok((api_version, kind)) => kinds.of_kind(api_version, kind).await,
    };
    let target = target.and_then(|kind| {
        meta.resource.clone_from(&kind.api.plural);
        if !kind.namespaced {
            meta.namespace.clear();
        } else if meta.namespace.is_empty() {
            let text = format!("an empty namespace may not be set for {} \"{}\"", kind.api.plural, meta.name);
            return Err(Failure::Malformed(text));
        }
        let object = ResourceIdentifier {
            group: meta.group.clone(),
            resource: meta.resource.clone(),
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
        };
        Ok(Target {
            kind,
            key: ObjectKey::new(meta.namespace.clone(), meta.name.clone()),
            choice: choose(&work.configs, &object),
            owned: is_owned(work.delete_option.as_ref(), &object),
        })
    });
    Prepared { meta, target: target.map_err(Arc::new) }
}

fn describe(ordinal: usize, manifest: &Value) -> ManifestResourceMeta {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&manifest["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    ManifestResourceMeta {
        ordinal: i32::try_from(ordinal).unwrap_or(i32::MAX),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text(&manifest["kind"]),
        resource: String::new(),
        name: text(&manifest["metadata"]["name"]),
        namespace: text(&manifest["metadata"]["namespace"]),
    }
}

/// The version and kind of what is an object of Kubernetes.
fn check(manifest: &Value) -> Result<(&str, &str), Failure> {
    let member = |of: &'static str, value: &'_ Value| match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(Failure::Malformed(format!("the manifest has no {of}"))),
    };
    let name = member("metadata.name", &manifest["metadata"]["name"])?;
    if name.contains(['/', '%', '?', '#']) || name == "." || name == ".." {
        return Err(Failure::Malformed(format!("\"{name}\" is no name of an object")));
    }
    let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or_default();
    if namespace.contains(['/', '%', '?', '#', '.']) {
        return Err(Failure::Malformed(format!("\"{namespace}\" is no name of a namespace")));
    }
    let text = |of: &'static str| match manifest[of].as_str() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Failure::Malformed(format!("the manifest has no {of}"))),
    };
    Ok((text("apiVersion")?, text("kind")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_loses_what_is_not_ours_to_say() {
        let mut manifest = json!({
            "kind": "Deployment", "status": {"replicas": 1},
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "creationTimestamp": null, "labels": {"a": "b"}},
            "spec": {"template": {"metadata": {"creationTimestamp": null, "name": "t"}}},
        });
        for part in ["status", "metadata", "spec"] {
            let only = json!({"kind": "Deployment", part: manifest[part]});
            assert!(!is_clean(&only), "{part}");
        }
        clean(&mut manifest);
        assert!(is_clean(&manifest));
        assert_eq!(
            manifest,
            json!({"kind": "Deployment", "metadata": {"name": "a", "labels": {"a": "b"}},
                "spec": {"template": {"metadata": {"name": "t"}}}})
        );
        for odd in [json!(null), json!([1]), json!({"metadata": 1})] {
            let mut cleaned = odd.clone();
            clean(&mut cleaned);
            assert_eq!(cleaned, odd);
            assert!(is_clean(&odd));
        }
    }

    #[test]
    fn what_is_no_object_is_refused_in_plain_words() {
        let object =
            |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        assert_eq!(check(&object("a")).unwrap(), ("v1", "ConfigMap"));
        for (manifest, says) in [
            (json!(1), "metadata.name"),
            (json!({"metadata": {"name": "a"}, "kind": "K"}), "apiVersion"),
            (json!({"metadata": {"name": "a"}, "apiVersion": "v1"}), "kind"),
            (object(""), "metadata.name"),
            (object("../secrets"), "no name of an object"),
            (object(".."), "no name of an object"),
            (object("a?dryRun=All"), "no name of an object"),
        ] {
            let text = check(&manifest).unwrap_err().to_string();
            assert!(text.contains(says), "{manifest}: {text}");
        }
    }
}
