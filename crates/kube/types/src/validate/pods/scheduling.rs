//! What says where a Pod may run.

use serde_json::Value;

use crate::validate::path::{Found, Path, list, member, number, text};
use crate::validate::{format, selectors};

pub fn tolerations(found: &mut Found, all: &[Value], at: &Path<'_>) {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    for (index, toleration) in all.iter().enumerate() {
        let at = at.index(index);
        let (key, operator, value) =
            (text(toleration, "key"), text(toleration, "operator"), text(toleration, "value"));
        let effect = text(toleration, "effect");
        if !key.is_empty() {
            found.texts(&at.child("key"), key, format::qualified_name(key));
        }
        if key.is_empty() && operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            found.invalid(&at.child("operator"), operator, why);
        }
        if member(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            found.invalid(&at.child("effect"), effect, why);
        }
        match operator {
            "Equal" | "" => found.texts(&at.child("operator"), value, format::label_value(value)),
            "Exists" if !value.is_empty() => {
                found.invalid(
                    &at.child("operator"),
                    value,
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            other => found.not_supported(&at.child("operator"), other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            found.one_of(&at.child("effect"), effect, &EFFECTS);
        }
    }
}

pub fn gates(found: &mut Found, gates: &[Value], at: &Path<'_>) {
    for (index, gate) in gates.iter().enumerate() {
        let name = text(gate, "name");
        found.texts(&at.index(index), name, format::qualified_name(name));
    }
}

pub fn spread(found: &mut Found, constraints: &[Value], at: &Path<'_>) {
    for (index, constraint) in constraints.iter().enumerate() {
        let at = at.index(index);
        if let Some(skew) = number(constraint, "maxSkew").filter(|skew| *skew <= 0) {
            found.invalid(&at.child("maxSkew"), skew, "must be greater than zero");
        }
        if text(constraint, "topologyKey").is_empty() {
            found.required(&at.child("topologyKey"), "can not be empty");
        }
        let action = text(constraint, "whenUnsatisfiable");
        found.one_of(&at.child("whenUnsatisfiable"), action, &["DoNotSchedule", "ScheduleAnyway"]);
        if let Some(selector) = member(constraint, "labelSelector") {
            selectors::check(found, selector, &at.child("labelSelector"));
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn affinity(found: &mut Found, affinity: &Value, at: &Path<'_>) {
    if let Some(node) = member(affinity, "nodeAffinity") {
        let at = at.child("nodeAffinity");
        if let Some(required) = member(node, REQUIRED) {
            let at = at.child(REQUIRED);
            let terms = list(required, "nodeSelectorTerms");
            if terms.is_empty() {
                found.required(&at.child("nodeSelectorTerms"), "must have at least one node selector term");
            }
            for (index, term) in terms.iter().enumerate() {
                node_term(found, term, &at.child("nodeSelectorTerms").index(index));
            }
        }
        for (index, preferred) in list(node, PREFERRED).iter().enumerate() {
            let all = at.child(PREFERRED);
            let at = all.index(index);
            weight(found, preferred, &at);
            node_term(found, &preferred["preference"], &at.child("preference"));
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = member(affinity, kind) else { continue };
        let at = at.child(kind);
        for (index, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_term(found, term, &at.child(REQUIRED).index(index));
        }
        for (index, preferred) in list(pods, PREFERRED).iter().enumerate() {
            let all = at.child(PREFERRED);
            let at = all.index(index);
            weight(found, preferred, &at);
            pod_term(found, &preferred["podAffinityTerm"], &at.child("podAffinityTerm"));
        }
    }
}

fn weight(found: &mut Found, preferred: &Value, at: &Path<'_>) {
    let weight = number(preferred, "weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        found.invalid(&at.child("weight"), weight, "must be in the range 1-100");
    }
}

pub fn node_term(found: &mut Found, term: &Value, at: &Path<'_>) {
    const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let all = at.child("matchExpressions");
        let at = all.index(index);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                found.required(&at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                found.forbidden(&at.child("values"), why);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                found.required(
                    &at.child("values"),
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                );
            }
            operator if OPERATORS.contains(&operator) => {}
            other => found.invalid(&at.child("operator"), other, "not a valid selector operator"),
        }
        let key = text(expression, "key");
        found.texts(&at.child("key"), key, format::qualified_name(key));
    }
}

fn pod_term(found: &mut Found, term: &Value, at: &Path<'_>) {
    if let Some(selector) = member(term, "labelSelector") {
        selectors::check(found, selector, &at.child("labelSelector"));
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        found.required(&at.child("topologyKey"), "can not be empty");
    }
    found.texts(&at.child("topologyKey"), key, format::qualified_name(key));
}
