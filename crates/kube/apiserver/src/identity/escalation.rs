//! Privilege escalation: a user cannot grant permissions that the user does not have.

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use serde_json::Value;

use super::authorize::{Attributes, authorize, rules_of, rules_of_role};
use super::rules::{Rule, not_held};
use crate::rest::Call;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a role or a binding that is about to be written.
pub fn check(call: &Call, object: &Value, old: Option<&Value>) -> Result<(), Status> {
    let plural = call.served.resource.plural.as_str();
    match plural {
        "roles" | "clusterroles" => {
            let unchanged = old.is_some_and(|old| {
                old.get("rules") == object.get("rules")
                    && old.get("aggregationRule") == object.get("aggregationRule")
            });
            if unchanged || may(call, "escalate", plural, meta::name(object)) {
                return Ok(());
            }
            let rules = object.get("rules").cloned().unwrap_or_default();
            let mut wanted: Vec<Rule> = serde_json::from_value(rules).unwrap_or_default();
            if object.get("aggregationRule").is_some_and(Value::is_object) {
                // What it will hold is not known yet: only those who hold everything may do that.
                let all = || vec!["*".to_owned()];
                wanted.push(Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() });
                wanted.push(Rule { verbs: all(), paths: all(), ..Rule::default() });
            }
            grant(call, object, &wanted)
        }
        "rolebindings" | "clusterrolebindings" => {
            let unchanged = old.is_some_and(|old| {
                old.get("subjects") == object.get("subjects") && old.get("roleRef") == object.get("roleRef")
            });
            let text = |name: &str| {
                meta::get(object, &["roleRef", name]).and_then(Value::as_str).unwrap_or_default()
            };
            let resource = if text("kind") == "ClusterRole" { "clusterroles" } else { "roles" };
            if unchanged || may(call, "bind", resource, text("name")) {
                return Ok(());
            }
            let Some(rules) = rules_of_role(&call.cluster, text("kind"), &call.namespace, text("name"))
            else {
                let resource =
                    aro_kube_apimachinery::GroupResource::new(GROUP, resource.trim_end_matches('s'));
                return Err(Status::not_found(&resource, text("name")));
            };
            grant(call, object, &rules)
        }
        _ => Ok(()),
    }
}

fn may(call: &Call, verb: &str, resource: &str, name: &str) -> bool {
    let asked = Attributes {
        verb,
        group: GROUP,
        version: "v1",
        resource,
        namespace: &call.namespace,
        name,
        ..Attributes::default()
    };
    authorize(&call.cluster, &call.user, &asked).allowed
}

fn grant(call: &Call, object: &Value, wanted: &[Rule]) -> Result<(), Status> {
    let held = rules_of(&call.cluster, &call.user, &call.namespace);
    let missing = not_held(&held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = call.user.groups.iter().map(|group| format!("{group:?}")).collect();
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        call.user.name,
        groups.join(" "),
        missing.join("\n")
    );
    Err(Status::forbidden(&call.resource_name(), meta::name(object), why))
}
