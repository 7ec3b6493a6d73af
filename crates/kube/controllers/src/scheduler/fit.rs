//! Whether a pod may run on a node, room aside.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration};

pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What a node says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traits {
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}

/// Why the pod may not run on the node; nothing if it may. In upstream's words.
pub fn refuses(name: &str, node: &Traits, pod: &Pod) -> Option<String> {
    let Some(spec) = &pod.spec else { return Some("node(s) were given no pod spec".to_owned()) };
    if let Some(taint) = first_untolerated(&node.taints, spec.tolerations.as_deref().unwrap_or_default()) {
        if taint.key == UNSCHEDULABLE {
            return Some("node(s) were unschedulable".to_owned());
        }
        let value = taint.value.as_deref().unwrap_or_default();
        return Some(format!("node(s) had untolerated taint {{{}: {value}}}", taint.key));
    }
    let selected = spec.node_selector.iter().flatten();
    let matches_selector = { selected }.all(|(key, value)| node.labels.get(key) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let matches_affinity = required.is_none_or(|required| {
        required.node_selector_terms.iter().any(|term| matches_term(name, node, term))
    });
    let matches = matches_selector && matches_affinity;
    (!matches).then(|| "node(s) didn't match Pod's node affinity/selector".to_owned())
}

/// The first taint that keeps new pods away and is not tolerated.
pub fn first_untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    let keeps_away = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints.iter().filter(keeps_away).find(|taint| !tolerations.iter().any(|one| tolerates(one, taint)))
}

pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    if !(effect.is_empty() || effect == taint.effect) || !(key.is_empty() || key == taint.key) {
        return false;
    }
    let (ours, theirs) =
        (toleration.value.as_deref().unwrap_or_default(), taint.value.as_deref().unwrap_or_default());
    match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        "Equal" => !key.is_empty() && ours == theirs,
        "Gt" => number(theirs).zip(number(ours)).is_some_and(|(theirs, ours)| theirs > ours),
        "Lt" => number(theirs).zip(number(ours)).is_some_and(|(theirs, ours)| theirs < ours),
        _ => false,
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A term without requirements matches nothing.
fn matches_term(name: &str, node: &Traits, term: &NodeSelectorTerm) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|wanted| matches(node.labels.get(&wanted.key).map(String::as_str), wanted))
        && fields.iter().all(|wanted| wanted.key == "metadata.name" && matches(Some(name), wanted))
}

fn matches(value: Option<&str>, wanted: &NodeSelectorRequirement) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let among = || value.is_some_and(|value| values.iter().any(|known| known == value));
    let compare = |with: fn(i64, i64) -> bool| {
        let (Some(value), [bound]) = (value.and_then(number), values) else { return false };
        number(bound).is_some_and(|bound| with(value, bound))
    };
    match wanted.operator.as_str() {
        "In" => among(),
        "NotIn" => !among(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(|value, bound| value > bound),
        "Lt" => compare(|value, bound| value < bound),
        _ => false,
    }
}
