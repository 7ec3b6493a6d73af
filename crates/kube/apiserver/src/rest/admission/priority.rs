//! Upstream's `Priority` plugin: a pod's priority is its class's, and there is one default class.

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use serde_json::{Value, json};

use crate::rest::Call;

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
const LOWER: &str = "PreemptLowerPriority";

/// What a class gives to a pod.
struct Class {
    /// Empty: there is no class.
    name: String,
    value: i64,
    policy: String,
}

impl Class {
    fn of(object: &Value) -> Self {
        Self {
            name: meta::name(object).to_owned(),
            value: object.get("value").and_then(Value::as_i64).unwrap_or_default(),
            policy: object.get("preemptionPolicy").and_then(Value::as_str).unwrap_or(LOWER).to_owned(),
        }
    }
}

fn default_class(call: &Call) -> Option<Class> {
    let classes = call.cluster.store.watch_cache(CLASSES).all();
    let defaults = classes.into_iter().map(|class| class.value());
    let defaults = defaults.filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
    // Two may have been created at the same moment.
    defaults.map(|class| Class::of(&class)).min_by_key(|class| class.value)
}

fn given<'a>(pod: &'a Value, member: &str) -> Option<&'a Value> {
    meta::get(pod, &["spec", member]).filter(|value| !value.is_null())
}

/// Sets the priority of a new pod. A client that names another one is refused: priorities are granted by class.
pub(super) fn resolve(call: &Call, pod: &mut Value) -> Result<(), Status> {
    let refuse = |why: String| Err(Status::forbidden(&call.resource_name(), meta::name(pod), why));
    let named = given(pod, "priorityClassName").and_then(Value::as_str).filter(|name| !name.is_empty());
    let class = match named {
        Some(name) => match call.cluster.store.watch_cache(CLASSES).get(name) {
            Some(class) => Class::of(&class.value()),
            None => return refuse(format!("no PriorityClass with name {name} was found")),
        },
        None => default_class(call).unwrap_or_else(|| Class {
            name: String::new(),
            value: 0,
            policy: LOWER.to_owned(),
        }),
    };
    let Class { name, value, policy } = class;
    if let Some(other) = given(pod, "priority").filter(|priority| priority.as_i64() != Some(value)) {
        return refuse(format!(
            "the integer value of priority ({other}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    if let Some(other) =
        given(pod, "preemptionPolicy").and_then(Value::as_str).filter(|other| *other != policy)
    {
        return refuse(format!(
            "the string value of PreemptionPolicy ({other}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    if !name.is_empty() {
        meta::set(pod, &["spec", "priorityClassName"], json!(name));
    }
    meta::set(pod, &["spec", "priority"], json!(value));
    meta::set(pod, &["spec", "preemptionPolicy"], json!(policy));
    Ok(())
}

/// A client may leave out on an update what was computed on creation.
pub(super) fn keep(pod: &mut Value, old: &Value) {
    for member in ["priority", "preemptionPolicy"] {
        if let (None, Some(before)) = (given(pod, member), given(old, member)) {
            meta::set(pod, &["spec", member], before.clone());
        }
    }
}

/// Refuses a second default.
pub(super) fn check_class(call: &Call, class: &Value, creates: bool) -> Result<(), Status> {
    if class.get("globalDefault") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    match default_class(call) {
        Some(known) if creates || known.name != meta::name(class) => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                known.name
            );
            Err(Status::forbidden(&call.resource_name(), meta::name(class), why))
        }
        _ => Ok(()),
    }
}
