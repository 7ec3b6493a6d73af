//! Creating objects.

use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{Details, Status};
use serde_json::{Value, json};

use super::admission::{self, Operation};
use super::call::Call;
use super::object;
use crate::http::answer::Answer;
use crate::identity::authorize::{Attributes, allow};
use crate::server::forbidden;
use crate::storage::{Change, Expect, Stored, WriteFailed};

/// What became of a write.
pub(super) enum Written {
    Stored(Arc<Stored>),
    /// A dry run: what it would have been.
    Dry(Value),
}

impl Written {
    pub(super) fn answer(&self, call: &Call, code: u16) -> Result<Answer, Status> {
        match self {
            Self::Stored(stored) => call.answer(code, stored),
            Self::Dry(object) => object::unstored_answer(call, code, object),
        }
    }
}

pub(super) async fn create(call: &mut Call) -> Result<Answer, Status> {
    if call.served.resource.namespaced && call.namespace.is_empty() {
        return Err(super::method_not_allowed());
    }
    let mut object = call.read_body()?;
    dedup_owners(call, &mut object);
    check_place(call, &mut object)?;
    // Members that the server removes have no field manager.
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
    }
    if call.served.is("apps", "daemonsets") {
        // Counted by the server, but the creator owns it.
        meta::set(
            &mut object,
            &["metadata", "annotations", "deprecated.daemonset.template.generation"],
            json!("0"),
        );
    }
    call.track(None, &mut object);
    create_object(call, object).await?.answer(call, 201)
}

/// The object belongs where the request points to. One that does not name its namespace gets it from the request.
pub(super) fn check_place(call: &Call, object: &mut Value) -> Result<(), Status> {
    refuse_elsewhere(call, object)?;
    if !object.get("metadata").is_some_and(Value::is_object) {
        object["metadata"] = json!({});
    }
    if call.served.resource.namespaced && meta::namespace(object).is_empty() {
        object["metadata"]["namespace"] = json!(call.namespace);
    }
    Ok(())
}

/// Refuses an object that says it belongs elsewhere.
pub(super) fn refuse_elsewhere(call: &Call, object: &Value) -> Result<(), Status> {
    let given = meta::namespace(object);
    if given.is_empty() || (call.served.resource.namespaced && given == call.namespace) {
        return Ok(());
    }
    Err(Status::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// Owners named twice count once.
pub(super) fn dedup_owners(call: &mut Call, object: &mut Value) {
    let Some(owners) = meta::get_mut(object, &["metadata", "ownerReferences"]).and_then(Value::as_array_mut)
    else {
        return;
    };
    let before = owners.len();
    let mut seen: Vec<String> = Vec::new();
    owners.retain(|owner| {
        let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        let new = !seen.contains(&uid);
        if new {
            seen.push(uid);
        }
        new
    });
    if owners.len() != before {
        call.warnings.push(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
                .to_owned()
                + &seen.join(", "),
        );
    }
}

/// How often a generated name is tried.
const ATTEMPTS: usize = 8;

/// Stores a new object. Its fields have owners already.
pub(super) async fn create_object(call: &mut Call, mut object: Value) -> Result<Written, Status> {
    let dry_run = call.query.dry_run();
    if !matches!(meta::resource_version(&object), "" | "0") {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Status::new(500, "", message));
    }
    let generated = meta::name(&object).is_empty();
    let prefix = meta::get(&object, &["metadata", "generateName"])
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for gone in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
            metadata.remove(gone);
        }
        metadata.insert("uid".to_owned(), json!(uuid::Uuid::new_v4().to_string()));
        metadata.insert("creationTimestamp".to_owned(), json!(call.time()));
    }
    let mut attempt = 0;
    loop {
        // Only a generated name is tried more than once.
        let mut object = if generated { object.clone() } else { std::mem::take(&mut object) };
        if generated && !prefix.is_empty() {
            meta::set(&mut object, &["metadata", "name"], json!(admission::generate_name(&prefix)));
        }
        admission::admit(call, Operation::Create, &mut object, None)?;
        prepare(call, &mut object);
        admission::requester(call, &mut object);
        validate(call, &object)?;
        authorize_creation(call)?;
        admission::validate(call, &object, None)?;
        let name = meta::name(&object).to_owned();
        let key = call.key_of(&call.namespace, &name);
        if dry_run {
            if call.latest(&key).is_some() {
                return Err(Status::already_exists(&call.resource_name(), &name));
            }
            return Ok(Written::Dry(object));
        }
        let draft = object::draft(call, &object)?;
        let committed =
            call.cluster.store.commit(&call.watch_cache, &key, Expect::Absent, Change::Put(draft)).await;
        match committed {
            Ok(stored) => return Ok(Written::Stored(stored)),
            Err(WriteFailed::Changed(_)) if generated && attempt < ATTEMPTS => attempt += 1,
            Err(WriteFailed::Changed(existing)) => return Err(exists(call, &name, existing.as_deref())),
            Err(WriteFailed::Unavailable) => return Err(unavailable()),
        }
    }
}

/// A replacement or an apply that creates needs the permission to create, in addition to its own verb's.
fn authorize_creation(call: &Call) -> Result<(), Status> {
    if call.verb == "create" {
        return Ok(());
    }
    let resource = &call.served.resource;
    let asked = Attributes {
        verb: "create",
        group: &resource.gvk.group,
        version: &resource.gvk.version,
        resource: &resource.plural,
        namespace: &call.namespace,
        name: &call.name,
        ..Attributes::default()
    };
    allow(&call.cluster, &call.user, &asked).map_err(|reason| forbidden(&call.user, &asked, &reason))
}

fn exists(call: &Call, name: &str, existing: Option<&Stored>) -> Status {
    let mut status = Status::already_exists(&call.resource_name(), name);
    if existing.is_some_and(|existing| meta::deletion_timestamp(&existing.value()).is_some()) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

pub(super) fn unavailable() -> Status {
    Status::unavailable("the storage takes no writes; see the server's log")
        .with_details(Details { retry_after_seconds: 1, ..Details::default() })
}

fn prepare(call: &Call, object: &mut Value) {
    if call.served.resource.custom {
        if call.served.resource.subresource("status").is_some()
            && let Some(members) = object.as_object_mut()
        {
            members.remove("status");
        }
        meta::set(object, &["metadata", "generation"], json!(1));
    } else {
        aro_kube_types::strategy::prepare_create(&call.served.resource, object);
        if call.served.is("", "persistentvolumes") {
            meta::set(object, &["status", "lastPhaseTransitionTime"], json!(call.time()));
        }
    }
}

fn validate(call: &Call, object: &Value) -> Result<(), Status> {
    let resource = &call.served.resource;
    let mut errors = aro_kube_types::validate::create(resource, object);
    if let Some(custom) = &call.served.custom {
        errors.extend(custom.compiled.validate(object, None));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let mut name = meta::name(object);
    if name.is_empty() {
        name = meta::get(object, &["metadata", "generateName"]).and_then(Value::as_str).unwrap_or_default();
    }
    let mut kind = resource.group_kind();
    if resource.plural == "events" && !resource.custom {
        // Both groups show the same objects, which are of the first.
        kind.group.clear();
    }
    Err(Status::invalid(&kind, name, &errors))
}
