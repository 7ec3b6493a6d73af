//! Subresources that are a view of, or an act on, the object: `scale` and `binding`.

use aro_kube_apimachinery::apply::{self, ApplyError, Conflict, Context};
use aro_kube_apimachinery::patch;
use aro_kube_apimachinery::selector::LabelSelector;
use aro_kube_apimachinery::status::{FieldError, Status};
use aro_kube_apimachinery::{GroupKind, GroupResource, decode, meta};
use serde_json::{Value, json};

use super::call::Call;
use super::create::Written;
use super::update::change;
use crate::http::answer::{self, Answer};

/// Where a type keeps its replicas.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn path(text: &str) -> Vec<String> {
    text.trim_start_matches('.').split('.').map(str::to_owned).collect()
}

fn names(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

impl Paths {
    fn of(call: &Call) -> Self {
        match call.served.custom.as_ref().and_then(|custom| custom.compiled.scale()) {
            Some(scale) => Self {
                spec: path(&scale.spec),
                status: path(&scale.status),
                selector: scale.label_selector.as_deref().map(path),
            },
            None => Self { spec: path(".spec.replicas"), status: path(".status.replicas"), selector: None },
        }
    }

    fn view(&self, call: &Call, object: &Value) -> Value {
        let count =
            |path: &[String]| meta::get(object, &names(path)).and_then(Value::as_i64).unwrap_or_default();
        let mut metadata = json!({});
        for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = meta::get(object, &["metadata", name]) {
                metadata[name] = value.clone();
            }
        }
        let selector = match &self.selector {
            Some(path) => {
                meta::get(object, &names(path)).and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            None if call.served.resource.custom => String::new(),
            None => selector_text(object),
        };
        let mut status = json!({"replicas": count(&self.status)});
        if !selector.is_empty() {
            status["selector"] = json!(selector);
        }
        let mut spec = json!({});
        if count(&self.spec) != 0 {
            spec["replicas"] = json!(count(&self.spec));
        }
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
    }
}

fn selector_text(object: &Value) -> String {
    let Some(selector) = meta::get(object, &["spec", "selector"]) else { return String::new() };
    if meta::kind(object) == "ReplicationController" {
        let wrapped = json!({"matchLabels": selector});
        return LabelSelector::from_object(&wrapped).map(|selector| selector.to_string()).unwrap_or_default();
    }
    LabelSelector::from_object(selector).map(|selector| selector.to_string()).unwrap_or_default()
}

fn show(call: &Call, paths: &Paths, written: &Written) -> Answer {
    let object = match written {
        Written::Stored(stored) => super::object::shown(call, stored),
        Written::Dry(object) => object.clone(),
    };
    answer::json(200, &paths.view(call, &object))
}

const APPLY: &str = "application/apply-patch+yaml";

pub(super) async fn handle(call: &mut Call) -> Result<Answer, Status> {
    let paths = Paths::of(call);
    if call.verb == "get" {
        let Some(stored) = call.watch_cache.get(&call.key()) else { return Err(call.not_found()) };
        return Ok(show(call, &paths, &Written::Stored(stored)));
    }
    let body = call.body.clone();
    let content_type = call.content_type();
    let (sent, _) = decode::parse_yaml(&body).map_err(Status::bad_request)?;
    let patching = call.verb == "patch";
    let subresource = call.subresource.clone();
    let written = change(call, |call, live| {
        // Cleared below, and this may be another attempt.
        call.subresource.clone_from(&subresource);
        let view = paths.view(call, live);
        let wanted = match content_type.as_str() {
            _ if !patching => sent.clone(),
            "application/json-patch+json" => {
                patch::json_patch(&view, &sent).map_err(|error| Status::new(422, "Invalid", error.message))?
            }
            "application/merge-patch+json" | "application/strategic-merge-patch+json" | APPLY => {
                patch::merge_patch(&view, &sent)
            }
            _ => return Err(super::object::unsupported_body()),
        };
        let replicas = replicas(call, &wanted)?;
        let version = if patching && content_type == APPLY { &sent } else { &wanted };
        let version = meta::resource_version(version).to_owned();
        let new = if patching && content_type == APPLY {
            apply_scale(call, &paths, live, &sent)?
        } else {
            let mut new = live.clone();
            meta::set(&mut new, &names(&paths.spec), json!(replicas));
            let manager = call.manager();
            call.with_context(&manager, false, |context| {
                apply::update(Some(live), &mut new, &Context { time: NO_TIME, ..*context });
            });
            Some(new)
        };
        let Some(mut new) = new else { return Ok(None) };
        meta::set(&mut new, &["metadata", "resourceVersion"], json!(version));
        // The object itself changes, as if it had been written directly.
        call.subresource.clear();
        Ok(Some(new))
    })
    .await?;
    Ok(show(call, &paths, &written))
}

/// Upstream notes no time for who scales.
const NO_TIME: &str = "";

fn replicas(call: &Call, scale: &Value) -> Result<i64, Status> {
    let replicas = match meta::get(scale, &["spec", "replicas"]) {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().ok_or_else(|| {
            Status::bad_request("Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32")
        })?,
    };
    let named = meta::name(scale);
    if !named.is_empty() && named != call.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({named}) does not match the name on the URL ({})",
            call.name
        )));
    }
    if replicas < 0 {
        let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        let kind = GroupKind { group: "autoscaling".to_owned(), kind: "Scale".to_owned() };
        return Err(Status::invalid(&kind, &call.name, &[error]));
    }
    Ok(replicas)
}

/// Applies a `Scale`: a configuration of the object with nothing but its replicas. `None`: nothing changes.
fn apply_scale(call: &Call, paths: &Paths, live: &Value, sent: &Value) -> Result<Option<Value>, Status> {
    let (api_version, kind) = (meta::api_version(sent), meta::kind(sent));
    if (api_version, kind) != (SCALE_VERSION, "Scale") {
        return Err(Status::bad_request(format!("invalid object type: {api_version}, Kind={kind}")));
    }
    let mut config = json!({"apiVersion": meta::api_version(live), "kind": meta::kind(live),
        "metadata": {"name": meta::name(live)}});
    if call.served.resource.namespaced {
        meta::set(&mut config, &["metadata", "namespace"], json!(meta::namespace(live)));
    }
    if let Some(replicas) = meta::get(sent, &["spec", "replicas"]).filter(|replicas| !replicas.is_null()) {
        meta::set(&mut config, &names(&paths.spec), replicas.clone());
    }
    let (manager, force) = (call.manager(), call.query.flag("force"));
    let applied = call.with_context(&manager, force, |context| {
        apply::apply(Some(live), &config, &Context { time: NO_TIME, ..*context })
    });
    applied.map_err(|error| match error {
        ApplyError::Conflict(conflicts) => {
            // The client knows the field by its name in a `Scale`, not in the object.
            let known = format!(" using {}", call.served.resource.api_version());
            let renamed = conflicts.into_iter().map(|conflict| Conflict {
                manager: match conflict.manager.strip_suffix(&known) {
                    Some(manager) => format!("{manager} using {SCALE_VERSION}"),
                    None => conflict.manager,
                },
                field: ".spec.replicas".to_owned(),
            });
            ApplyError::Conflict(renamed.collect()).status()
        }
        other => other.status(),
    })
}

const SCALE_VERSION: &str = "autoscaling/v1";

fn binding_name() -> GroupResource {
    GroupResource::new("", "pods/binding")
}

/// Binds a pod to a node.
pub(super) async fn bind(call: &mut Call) -> Result<Answer, Status> {
    let body = call.body.clone();
    let (binding, _) = decode::parse_yaml(&body).map_err(Status::bad_request)?;
    let node =
        meta::get(&binding, &["target", "name"]).and_then(Value::as_str).unwrap_or_default().to_owned();
    if node.is_empty() {
        // Upstream does not call this the client's fault.
        return Err(Status::new(500, "", FieldError::required("target.name", "").to_string()));
    }
    let time = call.time();
    change(call, |call, live| {
        let bound = meta::get(live, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
        if meta::deletion_timestamp(live).is_some() {
            let why = format!("pod {} is being deleted, cannot be assigned to a host", call.name);
            return Err(Status::conflict(&binding_name(), &call.name, why));
        }
        if !bound.is_empty() {
            let why = format!("pod {} is already assigned to node {bound:?}", call.name);
            return Err(Status::conflict(&binding_name(), &call.name, why));
        }
        let mut new = live.clone();
        meta::set(&mut new, &["metadata", "resourceVersion"], json!(""));
        meta::set(&mut new, &["spec", "nodeName"], json!(node));
        let conditions = meta::get(live, &["status", "conditions"]).and_then(Value::as_array).cloned();
        let mut conditions = conditions.unwrap_or_default();
        conditions.retain(|condition| condition.get("type").and_then(Value::as_str) != Some("PodScheduled"));
        conditions.push(json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": time,
        }));
        meta::set(&mut new, &["status", "conditions"], json!(conditions));
        // Upstream writes this past everything that counts generations and owners.
        Ok(Some(new))
    })
    .await?;
    Ok(answer::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}
