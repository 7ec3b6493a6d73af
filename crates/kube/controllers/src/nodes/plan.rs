//! What is said about a node: conditions and taints. Pure.

use aro_base::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that, when true, keep pods away.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];
/// Conditions a kubelet posts. Of the network, others know better.
const POSTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Whether a node says that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    NotReady,
    Unknown,
    /// It never said anything.
    Silent,
}

fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

pub fn readiness(node: &Node) -> Readiness {
    match condition(node, "Ready").map(|ready| ready.status.as_str()) {
        Some("True") => Readiness::Ready,
        Some("False") => Readiness::NotReady,
        Some(_) => Readiness::Unknown,
        None => Readiness::Silent,
    }
}

/// When its kubelet last posted a status.
pub fn heartbeat(node: &Node) -> Option<Timestamp> {
    condition(node, "Ready")?.last_heartbeat_time.as_ref().map(|time| time.0)
}

/// The conditions of a node that has fallen silent, as far as they have to change.
pub fn silenced(node: &Node, now: Timestamp) -> Vec<NodeCondition> {
    let new = |kind: &str| match condition(node, kind) {
        Some(known) if known.status == "Unknown" => None,
        Some(known) => Some(NodeCondition {
            status: "Unknown".to_owned(),
            reason: Some("NodeStatusUnknown".to_owned()),
            message: Some("Kubelet stopped posting node status.".to_owned()),
            last_transition_time: Some(Time(now)),
            ..known.clone()
        }),
        None => Some(NodeCondition {
            type_: kind.to_owned(),
            status: "Unknown".to_owned(),
            reason: Some("NodeStatusNeverUpdated".to_owned()),
            message: Some("Kubelet never posted node status.".to_owned()),
            last_heartbeat_time: node.metadata.creation_timestamp.clone(),
            last_transition_time: Some(Time(now)),
        }),
    };
    POSTED.into_iter().filter_map(new).collect()
}

/// What may be done with the taints that move pods away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moving {
    /// Put them on.
    Allowed,
    /// Leave those there are; put on no new ones.
    Later,
    /// Take them off.
    Stopped,
}

/// Whether this node is to get a taint that moves pods away, and has none of the kind.
pub fn wants_moving(node: &Node) -> bool {
    let lost = matches!(readiness(node), Readiness::NotReady | Readiness::Unknown);
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    lost && !taints.into_iter().flatten().any(is_moving)
}

fn is_moving(taint: &Taint) -> bool {
    taint.effect == "NoExecute" && (taint.key == NOT_READY || taint.key == UNREACHABLE)
}

fn is_ours(taint: &Taint) -> bool {
    let keeps_away = [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&taint.key.as_str())
        || PRESSURES.iter().any(|(_, key)| *key == taint.key);
    is_moving(taint) || taint.effect == "NoSchedule" && keeps_away
}

/// The taints a node should have; `None` if it has them. Those of others stay.
pub fn taints(node: &Node, moving: Moving, now: Timestamp) -> Option<Vec<Taint>> {
    let spec = node.spec.as_ref();
    let known: Vec<Taint> = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let lost = match readiness(node) {
        Readiness::Ready => None,
        // The admission of new nodes puts a taint on them until they say something: it stays.
        Readiness::Silent => known
            .iter()
            .any(|taint| taint.key == NOT_READY && taint.effect == "NoSchedule")
            .then_some(NOT_READY),
        Readiness::NotReady => Some(NOT_READY),
        Readiness::Unknown => Some(UNREACHABLE),
    };
    let mut wanted: Vec<(&str, &str)> = lost.map(|key| (key, "NoSchedule")).into_iter().collect();
    let had_one = known.iter().any(is_moving);
    if let Some(key) = lost
        && readiness(node) != Readiness::Silent
        && (moving == Moving::Allowed || moving == Moving::Later && had_one)
    {
        wanted.push((key, "NoExecute"));
    }
    for (kind, key) in PRESSURES {
        if condition(node, kind).is_some_and(|condition| condition.status == "True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    if spec.and_then(|spec| spec.unschedulable).unwrap_or(false) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let is = |taint: &Taint, (key, effect): (&str, &str)| taint.key == key && taint.effect == effect;
    let mut taints: Vec<Taint> = known
        .iter()
        .filter(|taint| !is_ours(taint) || wanted.iter().any(|wanted| is(taint, *wanted)))
        .cloned()
        .collect();
    for (key, effect) in wanted {
        if !known.iter().any(|taint| is(taint, (key, effect))) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: Some(Time(now)),
                value: None,
            });
        }
    }
    (taints != known).then_some(taints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(ready: Option<&str>, spec: &Value) -> Node {
        let conditions: Vec<Value> =
            ready.into_iter().map(|word| json!({"type": "Ready", "status": word})).collect();
        serde_json::from_value(
            json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    fn words(taints: Option<Vec<Taint>>) -> Option<Vec<String>> {
        let short = |key: &str| key.trim_start_matches("node.kubernetes.io/").to_owned();
        taints.map(|taints| {
            taints.iter().map(|taint| format!("{}:{}", short(&taint.key), taint.effect)).collect()
        })
    }

    #[test]
    fn taints_follow_readiness() {
        let of = |ready, moving| words(taints(&node(ready, &json!({})), moving, Timestamp::UNIX_EPOCH));
        let list = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(Some("True"), Moving::Allowed), None);
        assert_eq!(of(None, Moving::Allowed), None);
        assert_eq!(
            of(Some("False"), Moving::Allowed),
            list(&["not-ready:NoSchedule", "not-ready:NoExecute"])
        );
        assert_eq!(
            of(Some("Unknown"), Moving::Allowed),
            list(&["unreachable:NoSchedule", "unreachable:NoExecute"])
        );
        assert_eq!(of(Some("Unknown"), Moving::Later), list(&["unreachable:NoSchedule"]));
        assert_eq!(of(Some("Unknown"), Moving::Stopped), list(&["unreachable:NoSchedule"]));
    }

    #[test]
    fn a_node_that_is_back_loses_our_taints_and_keeps_those_of_others() {
        let spec = json!({"taints": [
            {"key": "dedicated", "value": "db", "effect": "NoExecute"},
            {"key": UNREACHABLE, "effect": "NoSchedule"}, {"key": UNREACHABLE, "effect": "NoExecute"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]});
        let left = words(taints(&node(Some("True"), &spec), Moving::Allowed, Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(left, ["dedicated:NoExecute"]);
        let other = words(taints(&node(Some("False"), &spec), Moving::Later, Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(other, ["dedicated:NoExecute", "not-ready:NoSchedule", "not-ready:NoExecute"]);
        let stopped =
            words(taints(&node(Some("Unknown"), &spec), Moving::Stopped, Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(stopped, ["dedicated:NoExecute", "unreachable:NoSchedule"]);
    }

    #[test]
    fn cordoned_nodes_and_nodes_under_pressure_take_no_pods() {
        let mut node = node(Some("True"), &json!({"unschedulable": true}));
        node.status.as_mut().unwrap().conditions.as_mut().unwrap().push(NodeCondition {
            type_: "DiskPressure".to_owned(),
            status: "True".to_owned(),
            ..NodeCondition::default()
        });
        let wanted = taints(&node, Moving::Allowed, Timestamp::UNIX_EPOCH);
        assert_eq!(words(wanted.clone()).unwrap(), ["disk-pressure:NoSchedule", "unschedulable:NoSchedule"]);
        node.spec.as_mut().unwrap().taints = wanted;
        assert_eq!(
            taints(&node, Moving::Allowed, Timestamp::UNIX_EPOCH),
            None,
            "a second look changes nothing"
        );
    }

    #[test]
    fn a_new_node_keeps_the_taint_it_was_admitted_with() {
        let spec = json!({"taints": [{"key": NOT_READY, "effect": "NoSchedule"}]});
        assert_eq!(taints(&node(None, &spec), Moving::Allowed, Timestamp::UNIX_EPOCH), None);
        assert_eq!(taints(&node(Some("True"), &spec), Moving::Allowed, Timestamp::UNIX_EPOCH), Some(vec![]));
    }

    #[test]
    fn everything_a_silent_node_said_becomes_unknown_once() {
        let mut node = node(Some("True"), &json!({}));
        let first = silenced(&node, Timestamp::UNIX_EPOCH);
        let reasons: Vec<_> = first.iter().map(|condition| condition.reason.clone().unwrap()).collect();
        assert_eq!(reasons[0], "NodeStatusUnknown");
        assert_eq!(reasons[1..], ["NodeStatusNeverUpdated"; 3]);
        node.status.as_mut().unwrap().conditions = Some(first);
        assert!(silenced(&node, Timestamp::MAX).is_empty());
    }
}
