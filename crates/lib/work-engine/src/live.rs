//! An object as it is on the cluster.

use std::borrow::Cow;
use std::fmt;

use aro_kube::informer::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Dropped on arrival.
const OWNERS: &str = "managedFields";

/// An object of any kind, without its managed fields: no decision depends on them, and they are half of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Live {
    value: Value,
    /// The little that `kube` asks for: name, namespace, uid and version.
    #[serde(skip)]
    meta: ObjectMeta,
}

impl Live {
    pub(crate) fn new(mut value: Value) -> Self {
        if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
            metadata.remove(OWNERS);
        }
        let text = |member: &str| value["metadata"][member].as_str().map(str::to_owned);
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Self { value, meta }
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn key(&self) -> ObjectKey {
        let text = |of: &Option<String>| of.clone().unwrap_or_default();
        ObjectKey { namespace: text(&self.meta.namespace), name: text(&self.meta.name) }
    }

    pub(crate) fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn resource_version(&self) -> &str {
        self.meta.resource_version.as_deref().unwrap_or_default()
    }

    /// How new it is. `None`: the server's versions are no numbers, and objects are taken as they come.
    pub(crate) fn version(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.value["metadata"]["deletionTimestamp"].is_string()
    }

    pub(crate) fn finalizers(&self) -> Vec<&str> {
        let finalizers = self.value["metadata"]["finalizers"].as_array();
        finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(crate) fn owners(&self) -> &[Value] {
        self.value["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
    }
}

impl<'de> Deserialize<'de> for Live {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members { inside: "metadata" }).map(Value::Object).map(Self::new)
    }
}

/// Reads the members of an object. Of its metadata the managed fields are passed over, not read and thrown away: a server's
/// answers consist of them by half.
struct Members {
    /// The member to look into; empty in the metadata itself.
    inside: &'static str,
}

impl<'de> Visitor<'de> for Members {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if self.inside.is_empty() && name == OWNERS {
                access.next_value::<IgnoredAny>()?;
                continue;
            }
            let value =
                if name == self.inside { access.next_value_seed(Metadata)? } else { access.next_value()? };
            members.insert(name, value);
        }
        Ok(members)
    }
}

/// Reads metadata.
struct Metadata;

impl<'de> DeserializeSeed<'de> for Metadata {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(Members { inside: "" }).map(Value::Object)
    }
}

impl Resource for Live {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_read_without_its_managed_fields_and_with_everything_else() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"managedFields": "mine"},
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "labels": {"managedFields": "mine"},
                "managedFields": [{"manager": "work-agent", "fieldsV1": {"f:data": {}}}]},
        });
        let live: Live = serde_json::from_str(&object.to_string()).unwrap();
        assert_eq!(live, Live::new(object));
        assert_eq!(live.value()["data"]["managedFields"], "mine");
        assert_eq!(live.value()["metadata"]["labels"]["managedFields"], "mine");
        assert_eq!(live.value()["metadata"].get("managedFields"), None);
        assert_eq!((live.uid(), live.version()), ("u", Some(7)));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["7", "[]", "null", r#"{"metadata": 7}"#] {
            assert!(serde_json::from_str::<Live>(text).is_err(), "{text}");
        }
    }
}
