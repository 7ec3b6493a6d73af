//! What the status of a definition becomes: names that are accepted, and conditions.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::definition::names::{Approval, approval_of};
use crate::definition::{defaults, list, text};

/// The definition's `.status` as upstream's controllers would leave it.
///
/// `others` are the other definitions (those of other groups do not matter); `now` is what `lastTransitionTime`
/// becomes where the status of a condition changes. Conditions that are not known here stay.
pub fn settle(crd: &Value, others: &[&Value], now: &str) -> Value {
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let before = crd.get("status").unwrap_or(&Value::Null);
    let mut conditions = Conditions { list: list(before, "conditions").to_vec(), now };
    let (accepted, conflict) =
        accept(spec, before.get("acceptedNames").unwrap_or(&Value::Null), &taken(crd, others));

    match approval_of(crd) {
        Approval::NotNeeded => {}
        approval => conditions.set("KubernetesAPIApprovalPolicyConformant", &conformance(approval)),
    }
    let was_established = conditions.is_true("Established");
    match &conflict {
        Some((reason, message)) => conditions.set("NamesAccepted", &State("False", reason, message.clone())),
        None => {
            conditions.set("NamesAccepted", &State("True", "NoConflicts", "no conflicts found".to_owned()));
        }
    }
    if !was_established {
        let state = match conflict {
            None => State("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned()),
            Some(_) => State("False", "NotAccepted", "not all names are accepted".to_owned()),
        };
        conditions.set("Established", &state);
    }
    let stored = match list(before, "storedVersions") {
        [] => defaults::storage_version(crd).into_iter().map(|name| json!(name)).collect(),
        stored => stored.to_vec(),
    };
    json!({"conditions": conditions.list, "acceptedNames": accepted, "storedVersions": stored})
}

/// A status, a reason and a message.
struct State(&'static str, &'static str, String);

struct Conditions<'a> {
    list: Vec<Value>,
    now: &'a str,
}

impl Conditions<'_> {
    fn is_true(&self, kind: &str) -> bool {
        self.list.iter().any(|known| text(known, "type") == kind && text(known, "status") == "True")
    }

    /// The time only moves when the status changes.
    fn set(&mut self, kind: &str, State(status, reason, message): &State) {
        let known = self.list.iter_mut().find(|known| text(known, "type") == kind);
        let since = match &known {
            Some(known) if text(known, "status") == *status => text(known, "lastTransitionTime").to_owned(),
            _ => self.now.to_owned(),
        };
        let condition = json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason,
            "message": message});
        match known {
            Some(known) => *known = condition,
            None => self.list.push(condition),
        }
    }
}

fn conformance(approval: Approval<'_>) -> State {
    match approval {
        Approval::Approved(url) => State("True", "ApprovedAnnotation", format!("approved in {url}")),
        Approval::Unapproved(why) => State("False", "UnapprovedAnnotation", format!("not approved: {why:?}")),
        Approval::Invalid(why) => State(
            "False",
            "InvalidAnnotation",
            format!("protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111: {why:?}"),
        ),
        Approval::Missing | Approval::NotNeeded => State(
            "False",
            "MissingAnnotation",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111".to_owned(),
        ),
    }
}

/// Names that other definitions of the group hold.
#[derive(Default)]
struct Taken<'a> {
    resources: HashSet<&'a str>,
    kinds: HashSet<&'a str>,
}

fn taken<'a>(crd: &Value, others: &[&'a Value]) -> Taken<'a> {
    let group = crd.pointer("/spec/group");
    let name = crd.pointer("/metadata/name");
    let mut taken = Taken::default();
    for other in others {
        if other.pointer("/spec/group") != group || other.pointer("/metadata/name") == name {
            continue;
        }
        let Some(accepted) = other.pointer("/status/acceptedNames") else { continue };
        taken.resources.extend(["plural", "singular"].map(|key| text(accepted, key)));
        taken.resources.extend(list(accepted, "shortNames").iter().filter_map(Value::as_str));
        taken.kinds.extend(["kind", "listKind"].map(|key| text(accepted, key)));
    }
    taken
}

type Conflict = Option<(&'static str, String)>;

/// Takes over the names that are free. The last conflict is the one that is reported.
fn accept(spec: &Value, held: &Value, taken: &Taken<'_>) -> (Value, Conflict) {
    let wanted = spec.get("names").unwrap_or(&Value::Null);
    let mut accepted = held.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    let free = |name: &str, held: bool, used: &HashSet<&str>| held || name.is_empty() || !used.contains(name);
    let mut single = |key: &str, reason: &'static str, used: &HashSet<&str>, conflict: &mut Conflict| {
        let name = text(wanted, key);
        if free(name, text(held, key) == name, used) {
            put(&mut accepted, key, json!(name));
        } else {
            *conflict = Some((reason, format!("{name:?} is already in use")));
        }
    };
    single("plural", "PluralConflict", &taken.resources, &mut conflict);
    single("singular", "SingularConflict", &taken.resources, &mut conflict);
    let held_short = list(held, "shortNames");
    let problems: Vec<String> = list(wanted, "shortNames")
        .iter()
        .filter(|short| !held_short.contains(short))
        .filter_map(Value::as_str)
        .filter(|short| taken.resources.contains(short))
        .map(|short| format!("{short:?} is already in use"))
        .collect();
    if !problems.is_empty() {
        let message =
            if problems.len() == 1 { problems.concat() } else { format!("[{}]", problems.join(", ")) };
        conflict = Some(("ShortNamesConflict", message));
    }
    single("kind", "KindConflict", &taken.kinds, &mut conflict);
    single("listKind", "ListKindConflict", &taken.kinds, &mut conflict);
    if problems.is_empty() {
        put(&mut accepted, "shortNames", wanted.get("shortNames").cloned().unwrap_or_default());
    }
    put(&mut accepted, "categories", wanted.get("categories").cloned().unwrap_or_default());
    for key in ["plural", "kind"] {
        accepted.entry(key).or_insert_with(|| json!(""));
    }
    (Value::Object(accepted), conflict)
}

/// Empty values are not written, except for the two that always are.
fn put(names: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if empty && !matches!(key, "plural" | "kind") {
        names.remove(key);
    } else {
        names.insert(key.to_owned(), value);
    }
}
