//! Deleting objects: at once, after a grace period, or when the last finalizer is removed.

use std::sync::Arc;

use aro_base::SignedDuration;
use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::schema::Schema;
use aro_kube_apimachinery::status::{Details, FieldError, Status};
use aro_kube_apimachinery::{Typed, decode};
use aro_kube_types::registry::builtin;
use serde_json::{Value, json};

use super::call::Call;
use super::create::unavailable;
use super::object;
use crate::cluster::{Cluster, rfc3339};
use crate::http::answer::{self, Answer};
use crate::storage::{Change, Draft, Expect, Stored, WriteFailed};
use crate::types::Served;

/// How something is to be deleted.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub policy: Option<Policy>,
    pub uid: Option<String>,
    pub version: Option<String>,
    pub dry_run: bool,
}

/// What happens to the objects it owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Orphan,
    Background,
    Foreground,
}

/// What became of it.
pub enum Deleted {
    Gone(Value),
    /// It goes when its finalizers are gone, or its time is over.
    Marked(Value),
}

/// Holds a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
pub const ORPHAN: &str = "orphan";
pub const FOREGROUND: &str = "foregroundDeletion";

pub(super) async fn delete(call: &mut Call) -> Result<Answer, Status> {
    let options = options(call)?;
    let key = call.key();
    if call.served.is("batch", "jobs") && options.policy.is_none() && options.grace_seconds.is_none() {
        call.warnings.push(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
                .to_owned(),
        );
    }
    super::admission::admit_delete(call)?;
    match delete_object(&call.cluster, &call.served, &key, &options).await? {
        Deleted::Marked(mut object) => {
            crate::convert::from_stored(&call.served, &mut object);
            object::unstored_answer(call, 200, &object)
        }
        Deleted::Gone(object) if returns_object(call) => object::unstored_answer(call, 200, &object),
        Deleted::Gone(object) => {
            let resource = &call.served.resource;
            let details = Details {
                name: call.name.clone(),
                group: resource.gvk.group.clone(),
                kind: resource.plural.clone(),
                uid: meta::uid(&object).to_owned(),
                ..Details::default()
            };
            Ok(answer::json(
                200,
                &json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_value(),
                }),
            ))
        }
    }
}

/// Kinds that show what was deleted.
fn returns_object(call: &Call) -> bool {
    let resource = &call.served.resource;
    !resource.custom
        && matches!(
            resource.plural.as_str(),
            "pods"
                | "services"
                | "serviceaccounts"
                | "persistentvolumes"
                | "persistentvolumeclaims"
                | "podtemplates"
                | "replicationcontrollers"
                | "resourcequotas"
                | "storageclasses"
                | "volumeattachments"
                | "csinodes"
                | "csidrivers"
        )
}

/// Options in the body, if there is one.
fn body(call: &Call) -> Result<Value, Status> {
    if call.body.is_empty() {
        return Ok(Value::Null);
    }
    let definitions = builtin().definitions();
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions".to_owned();
    let site = Schema { reference: Some(name), ..Schema::default() };
    let typed = Typed::new(&site, definitions);
    let mut body = match call.content_type().as_str() {
        object::PROTOBUF => object::from_protobuf(&call.body)?,
        "application/yaml" => decode::parse_yaml(&call.body).map_err(Status::bad_request)?.0,
        _ => {
            let head = decode::type_meta(&call.body);
            head.map_err(|problem| Status::bad_request(format!("couldn't get version/kind; {problem}")))?;
            decode::parse(&call.body).map_err(Status::bad_request)?.0
        }
    };
    let kind = meta::kind(&body);
    if !kind.is_empty() && kind != "DeleteOptions" {
        let version = meta::api_version(&body);
        return Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    decode::coerce(&mut body, typed).map_err(Status::bad_request)?;
    Ok(body)
}

/// Reads options from the body, or else from the query.
pub(super) fn options(call: &Call) -> Result<DeleteOptions, Status> {
    let mut options = DeleteOptions { dry_run: call.query.dry_run(), ..DeleteOptions::default() };
    let body = body(call)?;
    let mut policy;
    if body.is_object() {
        options.grace_seconds = body.get("gracePeriodSeconds").and_then(Value::as_i64);
        policy = body.get("propagationPolicy").and_then(Value::as_str).map(str::to_owned);
        if let Some(orphan) = body.get("orphanDependents").and_then(Value::as_bool) {
            if policy.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                return Err(invalid(FieldError::invalid(
                    "propagationPolicy",
                    policy.unwrap_or_default(),
                    detail,
                )));
            }
            policy = Some(if orphan { "Orphan" } else { "Background" }.to_owned());
        }
        let precondition = |name: &str| {
            meta::get(&body, &["preconditions", name]).and_then(Value::as_str).map(str::to_owned)
        };
        options.uid = precondition("uid");
        options.version = precondition("resourceVersion");
        for value in body.get("dryRun").and_then(Value::as_array).into_iter().flatten() {
            if value != "All" {
                return Err(invalid(FieldError::not_supported("dryRun", value.clone(), ["All"])));
            }
            options.dry_run = true;
        }
    } else {
        options.grace_seconds = call.query.get("gracePeriodSeconds").and_then(|text| text.parse().ok());
        policy = call.query.get("propagationPolicy").map(str::to_owned);
        if policy.is_none() && call.query.get("orphanDependents").is_some() {
            policy =
                Some(if call.query.flag("orphanDependents") { "Orphan" } else { "Background" }.to_owned());
        }
    }
    options.policy = match policy.as_deref() {
        None => None,
        Some("Orphan") => Some(Policy::Orphan),
        Some("Background") => Some(Policy::Background),
        Some("Foreground") => Some(Policy::Foreground),
        Some(other) => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            return Err(invalid(FieldError::not_supported("propagationPolicy", other, supported)));
        }
    };
    if let Some(error) = super::options::dry_run(call) {
        return Err(invalid(error));
    }
    if options.grace_seconds.is_some_and(|seconds| seconds < 0) {
        options.grace_seconds = Some(1);
    }
    Ok(options)
}

fn invalid(error: FieldError) -> Status {
    let kind = aro_kube_apimachinery::GroupKind {
        group: "meta.k8s.io".to_owned(),
        kind: "DeleteOptions".to_owned(),
    };
    Status::invalid(&kind, "", &[error])
}

/// What one pass decides.
enum Step {
    Remove,
    Mark(Value),
    /// Marked already, and this changes nothing.
    Wait,
}

/// Deletes an object, or marks it for deletion.
pub async fn delete_object(
    cluster: &Arc<Cluster>,
    served: &Arc<Served>,
    key: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    let watch_cache = cluster.store.watch_cache(&served.watch_cache);
    let resource = served.resource.group_resource();
    let name = key.rsplit('/').next().unwrap_or(key);
    loop {
        let Some(stored) = cluster.store.latest(&watch_cache, key) else {
            return Err(Status::not_found(&resource, name));
        };
        let live = stored.value();
        check_preconditions(served, name, &live, options)?;
        let step = plan(served, &live, options, cluster);
        if options.dry_run {
            return Ok(match step {
                Step::Mark(object) => Deleted::Marked(object),
                Step::Remove => Deleted::Gone(live),
                Step::Wait => Deleted::Marked(live),
            });
        }
        let expect = Expect::Version(stored.version);
        let committed = match &step {
            Step::Wait => return Ok(Deleted::Marked(live)),
            Step::Remove => cluster.store.commit(&watch_cache, key, expect, Change::Delete).await,
            Step::Mark(object) => {
                cluster.store.commit(&watch_cache, key, expect, Change::Put(Draft::of(object))).await
            }
        };
        match (committed, step) {
            (Ok(stored), Step::Remove) => return Ok(Deleted::Gone(last_state(&stored, options))),
            (Ok(stored), _) => return Ok(Deleted::Marked(stored.value())),
            (Err(WriteFailed::Changed(_)), _) => {}
            (Err(WriteFailed::Unavailable), _) => return Err(unavailable()),
        }
    }
}

/// What is shown of an object that is gone.
fn last_state(stored: &Stored, options: &DeleteOptions) -> Value {
    let mut object = stored.value();
    // A watcher of the deletion sees the final grace period.
    let grace = &["metadata", "deletionGracePeriodSeconds"];
    if let (Some(seconds), true) = (options.grace_seconds, meta::get(&object, grace).is_some()) {
        meta::set(&mut object, grace, json!(seconds));
    }
    object
}

fn check_preconditions(
    served: &Served,
    name: &str,
    live: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let differs = |what: &str, asked: &str, found: &str, happened: &str| {
        let why = format!(
            "the {what} in the precondition ({asked}) does not match the {what} in record ({found}). The object might have been {happened}"
        );
        let gvk = &served.resource.gvk;
        Err(Status::conflict(&aro_kube_apimachinery::GroupResource::new(&*gvk.group, &*gvk.kind), name, why))
    };
    if let Some(uid) = &options.uid
        && uid != meta::uid(live)
    {
        return differs("UID", uid, meta::uid(live), "deleted and then recreated");
    }
    if let Some(version) = &options.version
        && version != meta::resource_version(live)
    {
        return differs("ResourceVersion", version, meta::resource_version(live), "modified");
    }
    Ok(())
}

/// What deleting this object means now. Pure.
fn plan(served: &Served, live: &Value, options: &DeleteOptions, cluster: &Cluster) -> Step {
    let mut object = live.clone();
    let mut finalizers = finalizers_after(served, live, options);
    let marked = meta::deletion_timestamp(live).is_some();
    let definition = served.is("apiextensions.k8s.io", "customresourcedefinitions");
    if definition && !marked && !finalizers.contains(&CLEANUP) {
        finalizers.push(CLEANUP);
    }
    let grace = grace_seconds(served, live, options);
    let pending = !finalizers.is_empty() || keeps_namespace(served, live);
    if !pending && grace == 0 {
        return Step::Remove;
    }
    let before: Vec<&str> = meta::finalizers(live).collect();
    let known_grace = meta::get(live, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    let shorter = known_grace.is_some_and(|known| grace < known);
    if marked && !shorter && before == finalizers {
        return Step::Wait;
    }
    if finalizers.is_empty() {
        meta::remove(&mut object, &["metadata", "finalizers"]);
    } else {
        meta::set(&mut object, &["metadata", "finalizers"], json!(finalizers));
    }
    if !marked || shorter {
        let when = cluster.now().saturating_add(SignedDuration::from_secs(grace)).unwrap_or(cluster.now());
        meta::set(&mut object, &["metadata", "deletionTimestamp"], json!(rfc3339(when)));
        meta::set(&mut object, &["metadata", "deletionGracePeriodSeconds"], json!(grace));
        let generation = meta::generation(live);
        if generation > 0 && !marked {
            meta::set(&mut object, &["metadata", "generation"], json!(generation + 1));
        }
    }
    if definition && !marked {
        add_terminating(&mut object, &rfc3339(cluster.now()));
    }
    if served.is("", "namespaces") {
        meta::remove(&mut object, &["metadata", "deletionGracePeriodSeconds"]);
        meta::set(&mut object, &["status", "phase"], json!("Terminating"));
    }
    Step::Mark(object)
}

/// Tells that a definition is on its way out, and why it is still there.
fn add_terminating(object: &mut Value, now: &str) {
    let conditions = meta::get(object, &["status", "conditions"]).and_then(Value::as_array).cloned();
    let mut conditions = conditions.unwrap_or_default();
    conditions.retain(|condition| condition.get("type").and_then(Value::as_str) != Some("Terminating"));
    conditions.push(json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "lastTransitionTime": now,
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }));
    meta::set(object, &["status", "conditions"], json!(conditions));
}

/// A namespace stays until its contents are gone.
fn keeps_namespace(served: &Served, live: &Value) -> bool {
    served.is("", "namespaces")
        && meta::get(live, &["spec", "finalizers"])
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
}

/// Pods that run somewhere get time to end; nothing else does.
fn grace_seconds(served: &Served, live: &Value, options: &DeleteOptions) -> i64 {
    if !served.is("", "pods") {
        return 0;
    }
    let scheduled =
        meta::get(live, &["spec", "nodeName"]).and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    let phase = meta::get(live, &["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
    if !scheduled || matches!(phase, "Failed" | "Succeeded") {
        return 0;
    }
    let own = meta::get(live, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    options.grace_seconds.or(own).unwrap_or(30).max(0)
}

/// The finalizers that hold the object, after the policy is taken into account.
fn finalizers_after<'a>(served: &Served, live: &'a Value, options: &DeleteOptions) -> Vec<&'a str> {
    let current: Vec<&str> = meta::finalizers(live).collect();
    let policy = options.policy.or_else(|| default_policy(served, &current));
    let mut kept: Vec<&str> =
        current.iter().copied().filter(|name| ![ORPHAN, FOREGROUND].contains(name)).collect();
    match policy {
        Some(Policy::Orphan) => kept.push(ORPHAN),
        Some(Policy::Foreground) => kept.push(FOREGROUND),
        _ => {}
    }
    kept
}

/// Without a policy, finalizers that were set before stay in force.
fn default_policy(served: &Served, current: &[&str]) -> Option<Policy> {
    if current.contains(&ORPHAN) {
        return Some(Policy::Orphan);
    }
    if current.contains(&FOREGROUND) {
        return Some(Policy::Foreground);
    }
    let orphans = served.is("batch", "jobs") || served.is("", "replicationcontrollers");
    orphans.then_some(Policy::Orphan)
}
