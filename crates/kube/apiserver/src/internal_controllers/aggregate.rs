//! Cluster roles that are the sum of others.

use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::selector::LabelSelector;
use aro_kube_apimachinery::status::Status;
use serde_json::{Value, json};

use super::{CLUSTER_ROLES, modify};
use crate::cluster::Cluster;

pub(super) async fn reconcile(cluster: &Arc<Cluster>) -> Result<(), Status> {
    let watch_cache = cluster.store.watch_cache(CLUSTER_ROLES);
    let roles: Vec<Value> = watch_cache.all().iter().map(|role| role.value()).collect();
    for role in roles.iter().filter(|role| role.get("aggregationRule").is_some_and(Value::is_object)) {
        let rules = rules_of(role, &roles);
        modify(cluster, &watch_cache, meta::name(role), |live| {
            let mut new = live.clone();
            new["rules"] = json!(rules);
            Some(new)
        })
        .await?;
    }
    Ok(())
}

/// The rules of all roles it selects, each once, by name of the role.
fn rules_of<'a>(role: &Value, roles: &'a [Value]) -> Vec<&'a Value> {
    let selectors = meta::get(role, &["aggregationRule", "clusterRoleSelectors"]).and_then(Value::as_array);
    let selectors =
        selectors.into_iter().flatten().filter_map(|selector| LabelSelector::from_object(selector).ok());
    let mut rules: Vec<&Value> = Vec::new();
    for selector in selectors {
        let mut chosen: Vec<&Value> = roles
            .iter()
            .filter(|other| meta::name(other) != meta::name(role))
            .filter(|other| selector.matches(|name| meta::labels(other)?.get(name)?.as_str()))
            .collect();
        chosen.sort_by_key(|other| meta::name(other));
        for rule in chosen.into_iter().filter_map(|other| other.get("rules")?.as_array()).flatten() {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules
}
