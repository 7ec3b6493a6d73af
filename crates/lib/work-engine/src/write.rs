//! Single calls to the server about one object. What to do is decided elsewhere.

use std::sync::Arc;

use aro_kube::informer::ObjectKey;
use either::Either;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};

use crate::decide::Known;
use crate::failure::{Failure, code};
use crate::live::Live;
use crate::owners::Owner;
use crate::watch::Watch;

/// Under which name the agents of all hubs write.
pub(crate) const FIELD_MANAGER: &str = "work-agent";

/// Reads an object.
pub(crate) async fn read(watch: &Watch, key: &ObjectKey) -> Result<Known<Arc<Live>>, Failure> {
    match watch.api(&key.namespace).get(&key.name).await {
        Ok(live) => Ok(Known::There(watch.wrote(live))),
        // By its code: of a resource that is no longer served the server says it in plain text.
        Err(error) if code(&error) == 404 => {
            watch.absent(key, None);
            Ok(Known::Absent)
        }
        Err(error) => Err(Failure::Api(error)),
    }
}

/// Applies a manifest.
pub(crate) async fn apply(
    watch: &Watch,
    key: &ObjectKey,
    body: &Value,
    manager: &str,
    force: bool,
) -> Result<Arc<Live>, Failure> {
    let manager = if manager.is_empty() { FIELD_MANAGER } else { manager };
    let parameters = PatchParams { force, ..PatchParams::apply(manager) };
    let applied = watch.api(&key.namespace).patch(&key.name, &parameters, &Patch::Apply(body)).await;
    applied.map(|live| watch.wrote(live)).map_err(Failure::Api)
}

/// Whether applying failed because the manifest does not fit the rules of applying (a list that names one thing twice, for
/// instance), though it may well be written as a whole.
pub(crate) fn cannot_be_applied(failure: &Failure) -> bool {
    let Failure::Api(kube::Error::Api(status)) = failure else { return false };
    matches!(status.code, 400 | 500)
        && ["typed patch", "duplicate entries", "duplicate key"]
            .iter()
            .any(|text| status.message.contains(text))
}

/// Writes a manifest as a whole: everything but metadata and status is as it says; labels, annotations and owners are
/// added to.
pub(crate) async fn replace(watch: &Watch, key: &ObjectKey, body: &Value) -> Result<Arc<Live>, Failure> {
    let Known::There(live) = read(watch, key).await? else { return create(watch, key, body).await };
    let whole = Live::new(merged(live.value(), body));
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let written = watch.api(&key.namespace).replace(&key.name, &parameters, &whole).await;
    written.map(|live| watch.wrote(live)).map_err(Failure::Api)
}

/// What is there, made to what a manifest says.
fn merged(live: &Value, body: &Value) -> Value {
    let mut whole = body.clone();
    let mut metadata = live["metadata"].clone();
    for member in ["labels", "annotations"] {
        if let Some(Value::Object(wanted)) = body["metadata"].get(member) {
            match &mut metadata[member] {
                Value::Object(there) => there.extend(wanted.clone()),
                there => *there = Value::Object(wanted.clone()),
            }
        }
    }
    if let Some(Value::Array(wanted)) = body["metadata"].get("ownerReferences") {
        let mut owners = wanted.clone();
        let there = live["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.extend(there.filter(|owner| wanted.iter().all(|known| known["uid"] != owner["uid"])).cloned());
        metadata["ownerReferences"] = Value::Array(owners);
    }
    if let Value::Object(members) = &mut whole {
        members.insert("metadata".to_owned(), metadata);
        if let Some(status) = live.get("status") {
            members.insert("status".to_owned(), status.clone());
        }
    }
    whole
}

/// Makes an object. If there is one already, that is the answer.
pub(crate) async fn create(watch: &Watch, key: &ObjectKey, body: &Value) -> Result<Arc<Live>, Failure> {
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let made = watch.api(&key.namespace).create(&parameters, &Live::new(body.clone())).await;
    match made {
        Ok(live) => Ok(watch.wrote(live)),
        Err(error) if code(&error) == 409 => match read(watch, key).await? {
            Known::There(live) => Ok(live),
            // It went in between; the next try makes it.
            _ => Err(Failure::Api(error)),
        },
        Err(error) => Err(Failure::Api(error)),
    }
}

/// Sets our reference, or takes it away.
pub(crate) async fn own(
    watch: &Watch,
    key: &ObjectKey,
    live: &Live,
    owner: &Owner,
    owned: bool,
) -> Result<Arc<Live>, Failure> {
    let mut owners: Vec<Value> =
        live.owners().iter().filter(|known| known["uid"] != owner.uid.as_str()).cloned().collect();
    if owned {
        owners.push(owner.reference());
    }
    let patch = json!({"metadata": {
        "uid": live.uid(), "resourceVersion": live.resource_version(), "ownerReferences": owners,
    }});
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patched = watch.api(&key.namespace).patch(&key.name, &parameters, &Patch::Merge(&patch)).await;
    patched.map(|live| watch.wrote(live)).map_err(Failure::Api)
}

/// Deletes an object unless it is another one by now. What is left of it, if it does not go at once.
pub(crate) async fn delete(watch: &Watch, key: &ObjectKey, uid: &str) -> Result<Option<Arc<Live>>, Failure> {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match watch.api(&key.namespace).delete(&key.name, &parameters).await {
        Ok(Either::Left(left)) if lingers(&left) => Ok(Some(watch.wrote(left))),
        Ok(_) => {
            watch.absent(key, Some(uid));
            Ok(None)
        }
        Err(error) if code(&error) == 404 => {
            watch.absent(key, Some(uid));
            Ok(None)
        }
        Err(error) => Err(Failure::Api(error)),
    }
}

/// Whether an object that was deleted is still there: some servers answer with the object even if it is gone.
fn lingers(left: &Live) -> bool {
    let grace = left.value()["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    left.is_deleting() && (!left.finalizers().is_empty() || grace > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_as_a_whole_keeps_what_others_added_to_metadata() {
        let live = json!({
            "metadata": {"name": "a", "resourceVersion": "7", "labels": {"x": "1"}, "finalizers": ["f"],
                "ownerReferences": [{"uid": "theirs"}]},
            "data": {"old": "1"}, "status": {"s": 1},
        });
        let body = json!({
            "kind": "K", "metadata": {"name": "a", "labels": {"y": "2"}, "annotations": {"z": "3"},
                "ownerReferences": [{"uid": "ours"}]},
            "data": {"new": "2"},
        });
        assert_eq!(
            merged(&live, &body),
            json!({
                "kind": "K",
                "metadata": {"name": "a", "resourceVersion": "7", "labels": {"x": "1", "y": "2"}, "annotations": {"z": "3"},
                    "finalizers": ["f"], "ownerReferences": [{"uid": "ours"}, {"uid": "theirs"}]},
                "data": {"new": "2"}, "status": {"s": 1},
            })
        );
    }

    #[test]
    fn an_object_lingers_while_a_finalizer_holds_it() {
        let live = |metadata: Value| Live::new(json!({"metadata": metadata}));
        for (metadata, expected) in [
            (json!({"finalizers": ["f"]}), false),
            (json!({"deletionTimestamp": "t", "finalizers": ["f"]}), true),
            (json!({"deletionTimestamp": "t", "deletionGracePeriodSeconds": 30}), true),
            (json!({"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0}), false),
        ] {
            assert_eq!(lingers(&live(metadata.clone())), expected, "{metadata}");
        }
    }
}
