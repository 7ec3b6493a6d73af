//! One request to one cluster, from who is asking to the answer.
//!
//! The head of a request decides first: who is asking, whether they may, and what exists. Its body is read afterwards, so that
//! a caller without permission cannot make the server hold bytes.

use std::error::Error;
use std::sync::Arc;

use aro_kube_apimachinery::GroupResource;
use aro_kube_apimachinery::selector::FieldSelector;
use aro_kube_apimachinery::status::{Details, Status};
use aro_kube_types::registry::builtin;
use aro_web::{BodyError, BodyLimits};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request};

use crate::cluster::Cluster;
use crate::documents;
use crate::http::answer::{self, Answer};
use crate::http::media;
use crate::http::options::Query;
use crate::http::target::{ResourcePath, Target};
use crate::identity::authenticate::authenticate;
use crate::identity::authorize::{Attributes, allow};
use crate::identity::user::User;
use crate::identity::{reviews, tokens};
use crate::rest::{self, Call};
use crate::types::Served;

/// Answers a request. `peer` is who the connection's certificate names.
pub async fn answer<B>(
    cluster: &Arc<Cluster>,
    peer: Option<&Arc<User>>,
    request: Request<B>,
    limits: &BodyLimits,
) -> Answer
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let encoding = request.headers().get(http::header::ACCEPT_ENCODING).cloned();
    let (parts, body) = request.into_parts();
    let answer = match admit(cluster, peer, parts) {
        Ok(Admitted::Document(answer)) => answer,
        Ok(Admitted::Resource(call)) => {
            handle(*call, body, limits).await.unwrap_or_else(|status| answer::status(&status))
        }
        Err(status) => answer::status(&status),
    };
    let encoding = encoding.as_ref().and_then(|value| value.to_str().ok());
    answer::compress(answer, encoding)
}

/// A request that the caller may make.
enum Admitted {
    /// No resource is involved: the answer is here already.
    Document(Answer),
    /// The call, without its body.
    Resource(Box<Call>),
}

/// Reads the body of an admitted call, and answers it.
async fn handle<B>(mut call: Call, body: B, limits: &BodyLimits) -> Result<Answer, Status>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // What is read has no body, and the bytes of a forwarded port are not one.
    let has_body = !matches!(call.verb, "get" | "list" | "watch") && call.subresource != "portforward";
    // Held until the answer is there: its bytes count against the budget.
    let held = if has_body {
        Some(limits.read(body).await.map_err(|error| not_read(error, limits))?)
    } else {
        drop(body);
        None
    };
    call.body = held.as_ref().map(aro_web::HeldBody::bytes).unwrap_or_default();
    if reviews::is_review(&call.served) {
        return reviews::handle(call);
    }
    if call.served.is("", "serviceaccounts") && call.subresource == "token" {
        return tokens::request(call);
    }
    Ok(rest::handle(call).await)
}

/// The status of a request whose body was not read.
fn not_read(error: BodyError, limits: &BodyLimits) -> Status {
    match error {
        BodyError::TooLarge => {
            Status::too_large(format!("Request entity too large: limit is {}", limits.max))
        }
        BodyError::TimedOut => {
            let message = format!("the body of the request did not arrive within {:?}", limits.timeout);
            Status::new(408, "Timeout", message)
        }
        BodyError::OverBudget => {
            let message = "too many request bodies are in flight, please try again later";
            let details = Details { retry_after_seconds: 1, ..Details::default() };
            Status::new(429, "TooManyRequests", message).with_details(details)
        }
        BodyError::Unreadable => Status::bad_request("the body of the request could not be read"),
    }
}

/// Decides by the head of a request.
fn admit(cluster: &Arc<Cluster>, peer: Option<&Arc<User>>, parts: Parts) -> Result<Admitted, Status> {
    if cluster.closing.is_cancelled() {
        return Err(Status::unavailable("this cluster has stopped"));
    }
    let user = authenticate(cluster, peer, &parts.headers)?;
    let method = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
    let query = Query::parse(parts.uri.query());
    let path = match Target::parse(parts.uri.path()) {
        Target::NonResource(path) => {
            let attributes = Attributes { verb: non_resource_verb(&method), path, ..Attributes::default() };
            check(cluster, &user, &attributes)?;
            let answer = documents::answer(cluster, &method, path, &parts.headers, &query);
            return Ok(Admitted::Document(answer));
        }
        Target::Resource(path) => path,
    };
    let named = !path.name.is_empty();
    // Of one object, only the old form of the path is a watch.
    let asked = path.watch || (!named && query.flag("watch"));
    let watching = asked && method == Method::GET && path.subresource.is_empty();
    // A watch of one object is a watch of its collection with a selector.
    let verb = rest::verb(&method, named, watching);
    let fields = query.get("fieldSelector").unwrap_or_default();
    let selected = if named || !matches!(verb, "list" | "watch" | "deletecollection") {
        None
    } else {
        // Who may read one object may do so as a collection of one.
        FieldSelector::parse(fields).ok().and_then(|selector| selected_name(&selector))
    };
    let asked =
        Attributes { name: selected.as_deref().unwrap_or(&path.name), fields, ..attributes(verb, &path) };
    check(cluster, &user, &asked)?;
    let types = cluster.types();
    let Some(served) = types.find(path.group, path.version, path.resource) else {
        return not_found(&path);
    };
    match place(served, &path, verb) {
        Place::Served => {}
        Place::Missing => return not_found(&path),
        Place::WrongMethod => return Err(rest::method_not_allowed()),
    }
    if parts.method == Method::HEAD {
        return Err(rest::method_not_allowed());
    }
    let served = served.clone();
    let accept = parts.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
    // Logs are text and forwarded ports are no documents: neither is negotiated.
    let accept = accept.filter(|_| !matches!(path.subresource, "log" | "portforward"));
    let Some(accepted) = media::accepted(accept) else {
        let types = media::TYPES;
        // Upstream's router looks at media types alone, and only for built-in resources; the rest is looked at later.
        if served.custom.is_none() && !media::names_known_type(accept) {
            let message = format!("406: Not Acceptable\n\nAvailable representations: {types}");
            return Err(Status::not_acceptable(message).with_details(Details::default()));
        }
        return Err(Status::not_acceptable(format!("only the following media types are accepted: {types}")));
    };
    let mut query = query.into_owned();
    if watching && named {
        query.require_name(&path.name);
    }
    let namespace =
        if served.resource.namespaced { path.namespace.clone().into_owned() } else { String::new() };
    let call = Call {
        watch_cache: cluster.store.watch_cache(&served.watch_cache),
        cluster: cluster.clone(),
        user,
        served,
        verb,
        namespace,
        name: if watching { String::new() } else { path.name.clone().into_owned() },
        subresource: path.subresource.to_owned(),
        query,
        headers: parts.headers,
        body: Bytes::new(),
        accepted,
        now: cluster.now(),
        warnings: Vec::new(),
        upgradable: parts.extensions.get::<aro_web::Upgradable>().is_some(),
    };
    Ok(Admitted::Resource(Box::new(call)))
}

/// Whether a resource is served at the scope of a path.
enum Place {
    Served,
    Missing,
    WrongMethod,
}

fn place(served: &Served, path: &ResourcePath<'_>, verb: &str) -> Place {
    let resource = &served.resource;
    // Upstream's router knows no such path of a built-in type; of custom ones it does not look further.
    if path.has_more && !resource.custom && path.subresource != "proxy" {
        return Place::Missing;
    }
    if !resource.namespaced {
        // A custom type called `namespaces` is read as if it were inside of one, upstream too.
        let inside = path.inside_namespace || (resource.custom && !path.namespace.is_empty());
        return if inside { Place::Missing } else { Place::Served };
    }
    if !path.namespace.is_empty() {
        return Place::Served;
    }
    // Across all namespaces, objects can be listed and watched, nothing else.
    match verb {
        "list" | "watch" if resource.allows("list") && path.name.is_empty() => Place::Served,
        _ if resource.custom || !resource.allows("list") || !path.name.is_empty() => Place::Missing,
        _ => Place::WrongMethod,
    }
}

fn attributes<'a>(verb: &'a str, path: &'a ResourcePath<'a>) -> Attributes<'a> {
    Attributes {
        verb,
        group: path.group,
        version: path.version,
        resource: path.resource,
        subresource: path.subresource,
        namespace: &path.namespace,
        name: &path.name,
        fields: "",
        path: "",
    }
}

/// The only name a selector lets through.
fn selected_name(selector: &FieldSelector) -> Option<String> {
    let name = selector.requirements().find(|(field, equal, _)| *field == "metadata.name" && *equal)?.2;
    (!name.is_empty() && !name.contains(['/', '%']) && name != "." && name != "..").then(|| name.to_owned())
}

fn non_resource_verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        _ => "get",
    }
}

fn check(cluster: &Arc<Cluster>, user: &User, attributes: &Attributes<'_>) -> Result<(), Status> {
    allow(cluster, user, attributes).map_err(|reason| forbidden(user, attributes, &reason))
}

/// The status of a forbidden request.
pub fn forbidden(user: &User, attributes: &Attributes<'_>, reason: &str) -> Status {
    let who = aro_kube_apimachinery::status::go_quote(&user.name);
    let tail = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if !attributes.path.is_empty() {
        let message =
            format!("forbidden: User {who} cannot {} path {:?}{tail}", attributes.verb, attributes.path);
        return Status::new(403, "Forbidden", message).with_details(Details::default());
    }
    let resource = match attributes.subresource {
        "" => attributes.resource.to_owned(),
        subresource => format!("{}/{subresource}", attributes.resource),
    };
    let place = match attributes.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let why = format!(
        "User {who} cannot {} resource {resource:?} in API group {:?} {place}{tail}",
        attributes.verb, attributes.group
    );
    Status::forbidden(&GroupResource::new(attributes.group, attributes.resource), attributes.name, why)
}

/// Groups of built-in resources know what they do not have; others are not known at all.
fn not_found(path: &ResourcePath<'_>) -> Result<Admitted, Status> {
    let known = builtin().resources().iter().any(|resource| resource.gvk.group == path.group);
    if known {
        return Err(rest::page_not_found());
    }
    Ok(Admitted::Document(answer::text(404, "text/plain; charset=utf-8", "404 page not found\n")))
}
