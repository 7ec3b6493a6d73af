//! What of a Pod may change.

use serde_json::Value;

use super::SPEC;
use crate::validate::path::{Found, list, member, number, text};

const ALLOWED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn update(found: &mut Found, new: &Value, old: &Value) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    for key in ["containers", "initContainers"] {
        if list(spec, key).len() != list(before, key).len() {
            let why = if key == "containers" {
                "pod updates may not add or remove containers"
            } else {
                "pod updates may not add or remove init containers"
            };
            found.forbidden(&SPEC.child(key), why);
            return;
        }
    }
    active_deadline(found, spec, before);
    let kept = list(before, "tolerations").iter().all(|toleration| {
        let same = |of: &Value| without_seconds(of) == without_seconds(toleration);
        list(spec, "tolerations").iter().any(same)
    });
    if !kept {
        found.forbidden(
            &SPEC.child("tolerations"),
            "existing toleration can not be modified except its tolerationSeconds",
        );
    }
    // Gates may only go, and while there are some, the choice of nodes may narrow.
    let gated = !list(before, "schedulingGates").is_empty();
    if masked(spec, before, gated) != *before {
        found.forbidden(&SPEC, ALLOWED);
    }
}

fn without_seconds(toleration: &Value) -> Value {
    let mut copy = toleration.clone();
    if let Some(members) = copy.as_object_mut() {
        members.remove("tolerationSeconds");
    }
    copy
}

fn active_deadline(found: &mut Found, spec: &Value, before: &Value) {
    let at = SPEC.child("activeDeadlineSeconds");
    match (number(spec, "activeDeadlineSeconds"), number(before, "activeDeadlineSeconds")) {
        (Some(now), Some(was)) if now > was => {
            found.invalid(&at, now, "must be less than or equal to previous value");
        }
        (None, Some(_)) => {
            found.invalid(&at, Value::Null, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
}

/// The new spec with everything that may change put back.
fn masked(spec: &Value, before: &Value, gated: bool) -> Value {
    let mut copy = spec.clone();
    let Some(members) = copy.as_object_mut() else { return copy };
    for key in ["containers", "initContainers"] {
        let Some(Value::Array(own)) = members.get_mut(key) else { continue };
        for (container, was) in own.iter_mut().zip(list(before, key)) {
            if let (Some(container), false) = (container.as_object_mut(), text(was, "image").is_empty()) {
                container.insert("image".to_owned(), was["image"].clone());
            }
        }
    }
    let mut free = vec!["activeDeadlineSeconds", "tolerations"];
    if gated {
        free.extend(["schedulingGates", "nodeSelector", "affinity"]);
    }
    let was_negative = number(before, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0);
    if was_negative && number(spec, "terminationGracePeriodSeconds") == Some(1) {
        free.push("terminationGracePeriodSeconds");
    }
    // Ephemeral containers have their own path; older clients send what they know.
    free.push("ephemeralContainers");
    for key in free {
        match member(before, key) {
            Some(value) => members.insert(key.to_owned(), value.clone()),
            None => members.remove(key),
        };
    }
    copy
}
