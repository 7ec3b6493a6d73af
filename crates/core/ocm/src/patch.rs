//! What a PATCH does: which members may change, and how the sent value meets the stored one.
//!
//! The rules are data. A member without a rule is immutable: sending the stored value again is fine, another one is a problem.
//! `null` clears what may change; the original's client cannot send it, ours does.

use serde_json::{Map, Value};

use crate::shape::{join, shortened};
use crate::{Code, Problem};

/// What happens to the member at a path and to everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The sent value takes the place of the stored one.
    Replace(&'static str),
    /// Sent members take the place of stored ones; others stay.
    Merge(&'static str),
    /// What is sent is ignored: the server sets it.
    ReadOnly(&'static str),
}

impl Rule {
    fn path(self) -> &'static str {
        match self {
            Self::Replace(path) | Self::Merge(path) | Self::ReadOnly(path) => path,
        }
    }
}

/// The rules of clusters.
pub const CLUSTER: &[Rule] = &[
    Rule::Replace("node_drain_grace_period"),
    Rule::Replace("api.cidr_block_access"),
    Rule::Replace("registry_config.image_digest_mirrors"),
    Rule::Replace("properties"),
    Rule::Merge("autoscaler"),
    Rule::Replace("azure.etcd_encryption.data_encryption.customer_managed.kms.active_key.key_version"),
    Rule::Merge("azure.container_registry"),
    Rule::Replace("expiration_timestamp"),
    Rule::ReadOnly("aro"),
    Rule::ReadOnly("api.url"),
    Rule::ReadOnly("azure.oidc_issuer_url"),
    Rule::ReadOnly("console"),
    Rule::ReadOnly("creation_timestamp"),
    Rule::ReadOnly("delete_protection"),
    Rule::ReadOnly("dns"),
    Rule::ReadOnly("external_auth_config"),
    Rule::ReadOnly("external_id"),
    Rule::ReadOnly("health_state"),
    Rule::ReadOnly("inflight_checks"),
    Rule::ReadOnly("infra_id"),
    Rule::ReadOnly("managed"),
    Rule::ReadOnly("multi_az"),
    Rule::ReadOnly("node_pools"),
    Rule::ReadOnly("openshift_version"),
    Rule::ReadOnly("state"),
    Rule::ReadOnly("status"),
    Rule::ReadOnly("subscription"),
];

/// The rules of the autoscaler as an object of its own.
pub const AUTOSCALER: &[Rule] = &[Rule::Merge("")];

/// The rules of node pools.
pub const NODE_POOL: &[Rule] = &[
    Rule::Replace("labels"),
    Rule::Replace("taints"),
    Rule::Replace("replicas"),
    Rule::Replace("autoscaling"),
    Rule::Replace("node_drain_grace_period"),
    Rule::Replace("auto_repair"),
    Rule::Replace("tuning_configs"),
    Rule::Replace("kubelet_configs"),
    Rule::Merge("management_upgrade"),
    Rule::ReadOnly("status"),
];

/// The rules of external auths.
pub const EXTERNAL_AUTH: &[Rule] =
    &[Rule::Replace("issuer"), Rule::Replace("clients"), Rule::Replace("claim"), Rule::ReadOnly("status")];

/// The rules of provision shards.
pub const SHARD: &[Rule] = &[
    Rule::Replace("status"),
    Rule::ReadOnly("creation_timestamp"),
    Rule::ReadOnly("last_update_timestamp"),
    Rule::ReadOnly("management_cluster"),
];

/// Members of every object that only name it.
const NAMES: [&str; 2] = ["kind", "href"];

/// Merges a patch into a value, or returns everything that forbids it.
pub fn merge(rules: &[Rule], stored: &Value, patch: &Value) -> Result<Value, Vec<Problem>> {
    let mut merged = stored.clone();
    let mut problems = Vec::new();
    let Value::Object(members) = patch else {
        return Err(vec![Problem::new(Code::WrongType, "", "an object is expected")]);
    };
    if rules == AUTOSCALER {
        overlay(&mut merged, patch);
    } else {
        walk(rules, &mut merged, members, "", &mut problems);
    }
    if problems.is_empty() { Ok(merged) } else { Err(problems) }
}

/// The same for a node pool, where `replicas` and `autoscaling` exclude each other: setting one clears the other.
pub fn merge_node_pool(stored: &Value, patch: &Value) -> Result<Value, Vec<Problem>> {
    let sent = |name: &str| patch.get(name).is_some_and(|value| !value.is_null());
    if sent("replicas") && sent("autoscaling") {
        let reason = "'replicas' and 'autoscaling' cannot be set together";
        return Err(vec![Problem::new(Code::Conflicting, "replicas", reason)]);
    }
    let mut merged = merge(NODE_POOL, stored, patch)?;
    if let Value::Object(members) = &mut merged {
        if sent("replicas") {
            members.remove("autoscaling");
        } else if sent("autoscaling") {
            members.remove("replicas");
        }
    }
    Ok(merged)
}

/// Descends in the patch; its depth is that of a parsed document, which is bounded.
fn walk(
    rules: &[Rule],
    stored: &mut Value,
    patch: &Map<String, Value>,
    at: &str,
    problems: &mut Vec<Problem>,
) {
    for (name, sent) in patch {
        if NAMES.contains(&name.as_str()) {
            continue;
        }
        let path = join(at, name);
        match rules.iter().find(|rule| rule.path() == path) {
            Some(Rule::ReadOnly(_)) => {}
            Some(Rule::Replace(_)) => set(stored, name, sent.clone()),
            Some(Rule::Merge(_)) if sent.is_null() => set(stored, name, Value::Null),
            Some(Rule::Merge(_)) => overlay(member(stored, name), sent),
            None => {
                let below = format!("{path}.");
                let leads_on = rules.iter().any(|rule| rule.path().starts_with(&below));
                match sent {
                    Value::Object(inner) if leads_on || stored.get(name).is_some_and(Value::is_object) => {
                        walk(rules, member(stored, name), inner, &path, problems);
                    }
                    _ if is_same(stored.get(name), sent) => {}
                    _ => {
                        let reason = format!("'{path}' cannot be changed to {}", shown(sent));
                        problems.push(Problem::new(Code::Immutable, path, reason));
                    }
                }
            }
        }
    }
    if let Value::Object(members) = stored {
        // What was only visited must not stay behind as an empty object.
        members.retain(|_, value| !value.is_null());
    }
}

fn member<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    &mut value[name]
}

fn set(value: &mut Value, name: &str, new: Value) {
    *member(value, name) = new;
}

fn overlay(stored: &mut Value, sent: &Value) {
    match sent {
        Value::Object(members) => {
            if !stored.is_object() {
                *stored = Value::Object(Map::new());
            }
            for (name, inner) in members {
                overlay(&mut stored[name.as_str()], inner);
            }
            if let Value::Object(known) = stored {
                known.retain(|_, value| !value.is_null());
            }
        }
        other => *stored = other.clone(),
    }
}

/// Whether everything sent is what is stored. Absent, empty and null are the same.
fn is_same(stored: Option<&Value>, sent: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    let Some(stored) = stored.filter(|stored| !is_empty(stored)) else { return is_empty(sent) };
    match (stored, sent) {
        (Value::Object(known), Value::Object(members)) => members
            .iter()
            .filter(|(name, _)| !NAMES.contains(&name.as_str()))
            .all(|(name, inner)| is_same(known.get(name), inner)),
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => stored == sent,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", shortened(text)),
        Value::Object(_) | Value::Array(_) => "another value".to_owned(),
        other => shortened(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster() -> Value {
        json!({
            "kind": "Cluster", "id": "c1", "name": "one", "state": "ready",
            "properties": {"a": "1", "b": "2"},
            "api": {"listening": "external", "url": "u", "cidr_block_access": {"allow": {"mode": "allow_list", "values": ["1.0.0.0/8"]}}},
            "autoscaler": {"max_pod_grace_period": 600, "log_verbosity": 3},
            "azure": {"tenant_id": "t", "etcd_encryption": {"data_encryption": {"customer_managed": {"kms": {
                "visibility": "public", "active_key": {"key_vault_name": "kv", "key_name": "k", "key_version": "v1"}}}}}},
            "registry_config": {"image_digest_mirrors": [{"source": "s", "mirrors": ["m"]}]},
        })
    }

    #[test]
    fn properties_and_mirrors_are_replaced_and_the_autoscaler_is_merged() {
        let patch = json!({
            "kind": "Cluster",
            "properties": {"b": "3"},
            "api": {"cidr_block_access": {"allow": {"mode": "allow_all"}}},
            "registry_config": {"image_digest_mirrors": []},
            "autoscaler": {"kind": "ClusterAutoscaler", "max_pod_grace_period": 5},
        });
        let merged = merge(CLUSTER, &cluster(), &patch).unwrap();
        assert_eq!(merged["properties"], json!({"b": "3"}));
        assert_eq!(merged["api"]["cidr_block_access"], json!({"allow": {"mode": "allow_all"}}));
        assert_eq!((&merged["api"]["listening"], &merged["api"]["url"]), (&json!("external"), &json!("u")));
        assert_eq!(merged["registry_config"]["image_digest_mirrors"], json!([]));
        assert_eq!(merged["autoscaler"]["log_verbosity"], 3);
        assert_eq!(merged["autoscaler"]["max_pod_grace_period"], 5);
        assert_eq!(merge(CLUSTER, &merged, &patch).unwrap(), merged, "a second time changes nothing");
    }

    #[test]
    fn key_rotation_keeps_vault_and_key() {
        let patch = json!({"azure": {"etcd_encryption": {"data_encryption": {"customer_managed": {"kms": {
            "active_key": {"key_version": "v2"}}}}}}});
        let merged = merge(CLUSTER, &cluster(), &patch).unwrap();
        let key =
            &merged["azure"]["etcd_encryption"]["data_encryption"]["customer_managed"]["kms"]["active_key"];
        assert_eq!(key, &json!({"key_vault_name": "kv", "key_name": "k", "key_version": "v2"}));
        assert_eq!(merged["azure"]["tenant_id"], "t");
    }

    #[test]
    fn every_change_of_an_immutable_member_is_reported() {
        let same =
            json!({"id": "c1", "name": "one", "state": "error", "azure": {"tenant_id": "t"}, "network": {}});
        assert_eq!(merge(CLUSTER, &cluster(), &same).unwrap(), cluster());
        let patch = json!({"name": "two", "fips": true, "azure": {"tenant_id": "u", "subscription_id": "s"}});
        let problems = merge(CLUSTER, &cluster(), &patch).unwrap_err();
        let mut fields: Vec<&str> = problems.iter().map(|one| one.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["azure.subscription_id", "azure.tenant_id", "fips", "name"]);
        assert!(problems.iter().all(|one| one.code == Code::Immutable));
    }

    #[test]
    fn null_clears_what_may_change() {
        let pool = json!({"taints": [{"key": "k"}], "replicas": 2, "node_drain_grace_period": {"value": 1}});
        let merged =
            merge_node_pool(&pool, &json!({"taints": null, "node_drain_grace_period": null})).unwrap();
        assert_eq!(merged, json!({"replicas": 2}));
    }

    #[test]
    fn replicas_and_autoscaling_replace_each_other() {
        let pool = json!({"replicas": 2, "labels": {"a": "b"}});
        let scaled =
            merge_node_pool(&pool, &json!({"autoscaling": {"min_replica": 1, "max_replica": 3}})).unwrap();
        assert_eq!(
            scaled,
            json!({"autoscaling": {"min_replica": 1, "max_replica": 3}, "labels": {"a": "b"}})
        );
        let fixed = merge_node_pool(&scaled, &json!({"replicas": 4, "labels": {}})).unwrap();
        assert_eq!(fixed, json!({"replicas": 4, "labels": {}}));
        let both = json!({"replicas": 1, "autoscaling": {"min_replica": 1}});
        assert_eq!(merge_node_pool(&pool, &both).unwrap_err()[0].code, Code::Conflicting);
    }
}
