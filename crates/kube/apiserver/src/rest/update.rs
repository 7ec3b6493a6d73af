//! Replacing objects, and the part of every change that is the same.

use aro_kube_apimachinery::status::{FieldError, Status};
use aro_kube_apimachinery::{GroupKind, GroupResource, apply, meta};
use aro_kube_types::strategy;
use serde_json::{Value, json};

use super::admission::{self, Operation};
use super::call::Call;
use super::create::{Written, check_place, create_object, dedup_owners, unavailable};
use super::object;
use crate::http::answer::Answer;
use crate::storage::{Change, Expect, WriteFailed};

pub(super) async fn update(call: &mut Call) -> Result<Answer, Status> {
    let mut sent = call.read_body()?;
    check_place(call, &mut sent)?;
    let name = meta::name(&sent).to_owned();
    if name.is_empty() {
        meta::set(&mut sent, &["metadata", "name"], json!(call.name));
    } else if name != call.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    dedup_owners(call, &mut sent);
    if call.latest(&call.key()).is_none()
        && call.subresource.is_empty()
        && strategy::allows_create_on_update(&call.served.resource)
    {
        call.track(None, &mut sent);
        return create_object(call, sent).await?.answer(call, 201);
    }
    let written = change(call, |call, live| {
        let mut new = sent.clone();
        carry_over(&mut new, live);
        call.track(Some(live), &mut new);
        Ok(Some(new))
    })
    .await?;
    written.answer(call, 200)
}

/// A writer may leave out what only the server sets.
pub(super) fn carry_over(new: &mut Value, live: &Value) {
    for name in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]
    {
        let old = meta::get(live, &["metadata", name]).cloned();
        let given = meta::get(new, &["metadata", name]).is_some_and(|value| !value.is_null());
        // A wrong uid is refused below; the rest is simply not the client's to set.
        if name == "uid" && given {
            continue;
        }
        match old {
            Some(old) => meta::set(new, &["metadata", name], old),
            None => {
                meta::remove(new, &["metadata", name]);
            }
        }
    }
}

/// Others may be faster this many times.
const ATTEMPTS: usize = 64;

/// Changes an object that exists. `make` turns the live object into the new one, ownership of fields included;
/// `None`: there is nothing to do.
pub(super) async fn change(
    call: &mut Call,
    mut make: impl FnMut(&mut Call, &Value) -> Result<Option<Value>, Status>,
) -> Result<Written, Status> {
    let dry_run = call.query.dry_run();
    let key = call.key();
    let warnings = call.warnings.len();
    for _ in 0..ATTEMPTS {
        call.warnings.truncate(warnings);
        let Some(stored) = call.latest(&key) else { return Err(call.not_found()) };
        let live = object::shown(call, &stored);
        let Some(mut new) = make(call, &live)? else { return Ok(Written::Stored(stored)) };
        let named_version = check_version(call, &new, &live)?;
        meta::set(&mut new, &["metadata", "resourceVersion"], json!(meta::resource_version(&live)));
        admission::admit(call, Operation::Update, &mut new, Some(&live))?;
        prepare(call, &mut new, &live);
        validate(call, &new, &live)?;
        admission::validate(call, &new, Some(&live))?;
        apply::ignore_times(&live, &mut new);
        if dry_run {
            return Ok(Written::Dry(new));
        }
        if new == live {
            return Ok(Written::Stored(stored));
        }
        let gone = is_gone(&new);
        let next = if gone { Change::Delete } else { Change::Put(object::draft(call, &new)?) };
        let expect = Expect::Version(stored.version);
        match call.cluster.store.commit(&call.watch_cache, &key, expect, next).await {
            // The answer to the write that lets go of an object is what it wrote.
            Ok(_) if gone => return Ok(Written::Dry(new)),
            Ok(stored) => return Ok(Written::Stored(stored)),
            Err(WriteFailed::Changed(None)) => return Err(call.not_found()),
            Err(WriteFailed::Changed(Some(_))) if named_version => return Err(modified(call)),
            Err(WriteFailed::Changed(Some(_))) => {}
            Err(WriteFailed::Unavailable) => return Err(unavailable()),
        }
    }
    Err(modified(call))
}

fn modified(call: &Call) -> Status {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    Status::conflict(&call.resource_name(), &call.name, why)
}

/// Whether the request named a version; refused if it is not the current one.
fn check_version(call: &Call, new: &Value, live: &Value) -> Result<bool, Status> {
    let uid = meta::uid(new);
    // A patch may not change it either; that error is reported with the others.
    if call.verb != "patch" && !uid.is_empty() && uid != meta::uid(live) {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            meta::uid(live)
        );
        return Err(Status::conflict(&call.resource_name(), &call.name, why));
    }
    let version = meta::resource_version(new);
    if version.is_empty() || version == "0" {
        if call.verb == "update" && !strategy::allows_unconditional_update(&call.served.resource) {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            // Here upstream names the resource, not the kind.
            let GroupResource { group, resource } = call.resource_name();
            return Err(Status::invalid(&GroupKind { group, kind: resource }, &call.name, &[error]));
        }
        return Ok(false);
    }
    if version.parse::<u64>().is_err() {
        let error = FieldError::invalid("metadata.resourceVersion", version, "must be an integer");
        return Err(Status::invalid(&call.served.resource.group_kind(), &call.name, &[error]));
    }
    if version == meta::resource_version(live) { Ok(true) } else { Err(modified(call)) }
}

/// Marked for deletion, without finalizers.
pub fn is_gone(object: &Value) -> bool {
    let grace = meta::get(object, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    let spec_finalizers = meta::kind(object) == "Namespace"
        && meta::get(object, &["spec", "finalizers"])
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
    meta::deletion_timestamp(object).is_some()
        && meta::finalizers(object).next().is_none()
        && grace.unwrap_or_default() == 0
        && !spec_finalizers
}

fn prepare(call: &Call, new: &mut Value, live: &Value) {
    if call.subresource == "binding" {
        return;
    }
    if !call.served.resource.custom {
        strategy::prepare_update(&call.served.resource, &call.subresource, new, live);
        return;
    }
    let has_status = call.served.resource.subresource("status").is_some();
    match call.subresource.as_str() {
        "status" => {
            // Only the status and the bookkeeping of its owners may change here.
            put_back(new, live, &["metadata", "status"]);
            let tracked = meta::get(new, &["metadata", "managedFields"]).is_some();
            if let (Some(new), Some(live)) = (new.get_mut("metadata"), live.get("metadata")) {
                put_back(new, live, if tracked { &["managedFields"] } else { &[] });
            }
        }
        _ if has_status => match live.get("status") {
            Some(status) => new["status"] = status.clone(),
            None => {
                meta::remove(new, &["status"]);
            }
        },
        _ => {}
    }
    let generation = meta::generation(live) + i64::from(differs(new, live, has_status));
    meta::set(new, &["metadata", "generation"], json!(generation));
}

/// Makes an object what it was, but for some members. Mostly nothing differs, and nothing is copied.
fn put_back(new: &mut Value, live: &Value, except: &[&str]) {
    let (Some(new), Some(live)) = (new.as_object_mut(), live.as_object()) else { return };
    new.retain(|name, _| live.contains_key(name) || except.contains(&name.as_str()));
    for (name, old) in live.iter().filter(|(name, _)| !except.contains(&name.as_str())) {
        if new.get(name) != Some(old) {
            new.insert(name.clone(), old.clone());
        }
    }
}

/// Whether anything but metadata (and, if it has a path of its own, the status) differs.
fn differs(new: &Value, live: &Value, has_status: bool) -> bool {
    let skip = |name: &str| name == "metadata" || (has_status && name == "status");
    let (Some(new), Some(live)) = (new.as_object(), live.as_object()) else { return false };
    let names = new.keys().chain(live.keys()).filter(|name| !skip(name));
    names.into_iter().any(|name| new.get(name) != live.get(name))
}

fn validate(call: &Call, new: &Value, live: &Value) -> Result<(), Status> {
    let resource = &call.served.resource;
    let mut errors = aro_kube_types::validate::update(resource, &call.subresource, new, live);
    // Upstream checks metadata twice, and tells every cause twice.
    let twice: Vec<FieldError> =
        errors.iter().take_while(|error| error.field.starts_with("metadata.")).cloned().collect();
    errors.splice(0..0, twice);
    if let Some(custom) = &call.served.custom {
        errors.extend(custom.compiled.validate(new, Some(live)));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(&resource.group_kind(), meta::name(new), &errors))
    }
}
