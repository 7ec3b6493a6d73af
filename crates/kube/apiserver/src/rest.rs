//! The verbs on resources: what each does to storage, and what it answers.
//!
//! The flow of a write: decode and default what was sent, track who owns which fields, admit, prepare (what this path may
//! not change is put back), validate, and commit against the version that was read. On a conflict, start over
//! with what is there now, unless the request named a version.

pub mod admission;
pub mod call;
mod collection;
mod create;
mod delete;
mod evict;
mod get;
mod list;
mod object;
mod options;
mod patch;
mod scale;
mod update;
mod watch;

use aro_kube_apimachinery::status::Status;
use http::Method;

pub use call::Call;
pub use delete::{CLEANUP, DeleteOptions, FOREGROUND, ORPHAN, Policy, delete_object};
pub use object::metadata_only;
pub use update::is_gone;

use crate::events::EVENTS;
use crate::http::answer::{self, Answer};
use crate::nodes;

/// The verb of a request on a resource, as discovery and roles name it.
pub fn verb(method: &Method, named: bool, watching: bool) -> &'static str {
    match (method.as_str(), named) {
        ("GET" | "HEAD", _) if watching => "watch",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "",
    }
}

/// Answers a request on a resource that is stored. The caller is authorized.
pub async fn handle(mut call: Call) -> Answer {
    let answered = run(&mut call).await;
    let mut answer = answered.unwrap_or_else(|status| answer::status(&status));
    if let Some(warning) = call.served.custom.as_ref().and_then(|custom| custom.warning.clone()) {
        call.warnings.insert(0, warning);
    }
    answer::warn(&mut answer, &call.warnings);
    answer
}

async fn run(call: &mut Call) -> Result<Answer, Status> {
    let resource = call.served.resource.clone();
    let subresource = call.subresource.clone();
    if *call.served.watch_cache == *EVENTS {
        call.cluster.events.prune(&call.cluster).await;
    }
    if ["create", "update", "patch"].contains(&call.verb) {
        options::check(call)?;
    }
    if subresource.is_empty() {
        // Only custom resources are created at the path of an object.
        if resource.custom && call.name.is_empty() && ["update", "patch"].contains(&call.verb) {
            return Err(Status::bad_request("name must be provided"));
        }
        let placed = match call.verb {
            "update" | "patch" => !call.name.is_empty(),
            "create" => call.name.is_empty() || resource.custom,
            _ => true,
        };
        if !placed || !resource.allows(call.verb) {
            return Err(method_not_allowed());
        }
        return match call.verb {
            "get" => get::get(call).await,
            "list" => list::list(call).await,
            "watch" => watch::watch(call),
            "create" => create::create(call).await,
            "update" => update::update(call).await,
            "patch" => patch::patch(call).await,
            "delete" => delete::delete(call).await,
            "deletecollection" => collection::delete(call).await,
            _ => Err(method_not_allowed()),
        };
    }
    let Some(known) = resource.subresource(&subresource) else {
        return Err(if resource.custom { call.not_found() } else { page_not_found() });
    };
    if !known.verbs.iter().any(|verb| verb == call.verb) {
        return Err(method_not_allowed());
    }
    match (subresource.as_str(), call.verb) {
        ("scale", _) => scale::handle(call).await,
        ("status" | "approval" | "ephemeralcontainers" | "resize", "get") => get::get(call).await,
        ("status" | "approval" | "ephemeralcontainers" | "resize" | "finalize", "update") => {
            update::update(call).await
        }
        ("status" | "approval" | "ephemeralcontainers" | "resize", "patch") => patch::patch(call).await,
        ("binding", "create") => scale::bind(call).await,
        ("eviction", "create") => evict::evict(call).await,
        ("log", "get") => nodes::logs(call).await,
        ("portforward", "get" | "create") => nodes::portforward(call),
        _ => Err(nodes::not_possible(&resource.plural, &subresource)),
    }
}

/// What a path that names nothing is answered with.
pub fn page_not_found() -> Status {
    Status::new(404, "NotFound", "the server could not find the requested resource")
        .with_details(aro_kube_apimachinery::status::Details::default())
}

pub fn method_not_allowed() -> Status {
    Status::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        .with_details(aro_kube_apimachinery::status::Details::default())
}
