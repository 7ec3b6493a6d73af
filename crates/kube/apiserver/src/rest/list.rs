//! Reading collections: selectors, pages, versions.

use std::sync::Arc;
use std::time::Duration;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::selector::{FieldSelector, LabelSelector};
use aro_kube_apimachinery::status::{Cause, Details, FieldError, Status};
use aro_kube_types::fields::unknown_field;
use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::Call;
use super::object;
use crate::http::answer::{self, Answer};
use crate::http::media::Shape;
use crate::storage::{Listed, Lister, Stored, TooOld};
use crate::types::Served;

/// Which objects of a collection are meant.
pub struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    served: Arc<Served>,
}

impl Selection {
    pub fn of(call: &Call) -> Result<Self, Status> {
        let labels = call.query.labels()?;
        let fields = call.query.fields()?;
        let known = selectable(&call.served);
        for (field, ..) in fields.requirements() {
            if !known.iter().any(|name| name == field) {
                return Err(Status::bad_request(unknown_field(&call.served.resource, field)));
            }
        }
        Ok(Self { labels, fields, served: call.served.clone() })
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn matches(&self, object: &Stored) -> bool {
        if !self.labels.is_empty() && !self.labels.matches(|name| object.label(name)) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let mut tree = None;
        self.fields.requirements().all(|(field, equal, value)| {
            let found = match field {
                "metadata.name" => object.name() == value,
                "metadata.namespace" => object.namespace() == value,
                other => {
                    let tree = tree.get_or_insert_with(|| {
                        let mut tree = object.value();
                        crate::convert::from_stored(&self.served, &mut tree);
                        tree
                    });
                    field_of(&self.served, tree, other) == value
                }
            };
            found == equal
        })
    }
}

fn selectable(served: &Served) -> Vec<String> {
    let mut names: Vec<String> = vec!["metadata.name".to_owned(), "metadata.namespace".to_owned()];
    match &served.custom {
        Some(custom) => {
            names.extend(custom.selectable.iter().map(|path| path.trim_start_matches('.').to_owned()));
        }
        None => names.extend(
            aro_kube_types::fields::field_selectors(&served.resource).iter().map(|name| (*name).to_owned()),
        ),
    }
    names
}

fn field_of(served: &Served, tree: &Value, field: &str) -> String {
    if served.custom.is_some() {
        let path: Vec<&str> = field.split('.').collect();
        return match meta::get(tree, &path) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
    }
    aro_kube_types::fields::field_value(&served.resource, tree, field)
        .map(|value| value.into_owned())
        .unwrap_or_default()
}

/// As Go reads it: bits left over at the end do not matter.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Where a page ended.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    v: String,
    rv: u64,
    start: String,
    /// How many objects follow. Carried from page to page, so that none has to count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<u64>,
}

impl Continue {
    fn encode(version: u64, last: &str, left: Option<u64>) -> String {
        let token = Self { v: "meta.k8s.io/v1".to_owned(), rv: version, start: format!("{last}\0"), left };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self, Status> {
        let invalid = |why: &str| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = LENIENT.decode(text.trim_end_matches('=')).map_err(|error| match error {
            base64::DecodeError::InvalidByte(at, _) => {
                invalid(&format!("illegal base64 data at input byte {at}"))
            }
            _ => invalid(&format!("illegal base64 data at input byte {}", text.len())),
        })?;
        let (token, _) = aro_kube_apimachinery::decode::parse(&bytes).map_err(|problem| invalid(&problem))?;
        let token: Self = serde_json::from_value(token).map_err(|error| invalid(&error.to_string()))?;
        if token.v != "meta.k8s.io/v1" {
            return Err(invalid(&format!("server does not recognize this encoded version {:?}", token.v)));
        }
        Ok(token)
    }
}

pub(super) fn parse_version(text: &str) -> Result<u64, Status> {
    text.parse()
        .map_err(|_| Status::bad_request(format!("invalid resource version: {}", invalid_version(text))))
}

pub(super) fn invalid_version(text: &str) -> String {
    let quoted = aro_kube_apimachinery::status::go_quote(text);
    format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax")
}

/// Waits until readers may see this version; a client may have heard of it elsewhere.
pub(super) async fn until_version(call: &Call, version: u64) -> Result<(), Status> {
    if call.cluster.store.version() >= version {
        return Ok(());
    }
    let mut versions = call.cluster.store.versions();
    let reached = tokio::time::timeout(Duration::from_secs(3), versions.wait_for(|now| *now >= version));
    if matches!(reached.await, Ok(Ok(_))) {
        return Ok(());
    }
    Err(too_large(version, call.cluster.store.version()))
}

pub(super) fn too_large(version: u64, now: u64) -> Status {
    let message = format!("Timeout: Too large resource version: {version}, current: {now}");
    let cause = Cause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    Status::new(504, "Timeout", message).with_details(Details {
        causes: vec![cause],
        retry_after_seconds: 1,
        ..Details::default()
    })
}

/// The prefix of keys a request is about.
pub(super) fn prefix(call: &Call) -> String {
    if call.served.resource.namespaced && !call.namespace.is_empty() {
        format!("{}/", call.namespace)
    } else {
        String::new()
    }
}

/// What a list request means, checked.
fn check_options(call: &Call) -> Result<(), Status> {
    let matching = call.query.get("resourceVersionMatch");
    let version = call.query.get("resourceVersion");
    let mut errors = Vec::new();
    if call.query.get("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if let Some(matching) = matching {
        if version.is_none() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden("resourceVersionMatch", detail));
        }
        if call.query.get("continue").is_some() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden("resourceVersionMatch", detail));
        }
        if !["Exact", "NotOlderThan"].contains(&matching) {
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                matching,
                ["Exact", "NotOlderThan", ""],
            ));
        }
        if matching == "Exact" && version == Some("0") {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden("resourceVersionMatch", detail));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let kind =
        aro_kube_apimachinery::GroupKind { group: "meta.k8s.io".to_owned(), kind: "ListOptions".to_owned() };
    Err(Status::invalid(&kind, "", &errors))
}

/// Where the next page begins.
pub(super) struct NextPage {
    token: String,
    /// How many objects are on it and the ones after it. Not known for selections.
    remaining: Option<u64>,
}

/// Finds what a list request asks for.
pub(super) async fn select(call: &Call, selection: &Selection) -> Result<(Listed, Option<NextPage>), Status> {
    check_options(call)?;
    // Upstream ignores a limit that is not positive.
    let limit = call.query.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let prefix = prefix(call);
    let token = call.query.get("continue").map(Continue::decode).transpose()?;
    let asked =
        call.query.get("resourceVersion").map(parse_version).transpose()?.filter(|version| *version > 0);
    if token.is_some() && asked.is_some() {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let exact = match (&token, asked) {
        (Some(token), _) => Some(token.rv),
        (None, Some(version)) if call.query.get("resourceVersionMatch") == Some("Exact") => Some(version),
        _ => None,
    };
    if let Some(version) = asked {
        until_version(call, version).await?;
    }
    let after = token.as_ref().map(|token| token.start.trim_end_matches('\0'));
    let listed = match exact {
        Some(version) => {
            let lister = call.watch_cache.lister_at(version, &prefix, after, limit);
            read(lister, selection).await.map_err(|_| expired(token.is_some(), version))?
        }
        None => list_now(call, &prefix, limit, selection).await,
    };
    let left = match &token {
        Some(token) => token.left,
        None => listed.total.map(|total| total as u64),
    };
    let next = listed.objects.last().filter(|_| listed.more).map(|last| {
        let counted = left.filter(|_| selection.is_empty());
        let remaining = counted.map(|left| left.saturating_sub(listed.objects.len() as u64));
        NextPage { token: Continue::encode(listed.version, &last.key, remaining), remaining }
    });
    Ok((listed, next))
}

/// The first page of a list as it is now.
async fn list_now(call: &Call, prefix: &str, limit: usize, selection: &Selection) -> Listed {
    let published = || call.cluster.store.version();
    let mut lister = call.watch_cache.lister(prefix, None, limit, published);
    loop {
        match read(lister, selection).await {
            Ok(listed) => return listed,
            // More was written meanwhile than history holds.
            Err(_) => lister = call.watch_cache.short_lister(prefix, None, limit, published),
        }
    }
}

/// Reads a list chunk by chunk. Between two chunks other tasks run: a selector over many objects takes a while.
async fn read(mut lister: Lister<'_>, selection: &Selection) -> Result<Listed, TooOld> {
    while !lister.step(|object| selection.matches(object))? {
        tokio::task::yield_now().await;
    }
    Ok(lister.finish())
}

fn expired(continued: bool, version: u64) -> Status {
    if continued {
        return Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        );
    }
    Status::expired(format!("The resourceVersion for the provided list is too old: {version}."))
}

pub(super) async fn list(call: &mut Call) -> Result<Answer, Status> {
    let selection = Selection::of(call)?;
    let (listed, next) = select(call, &selection).await?;
    let mut metadata = json!({"resourceVersion": listed.version.to_string()});
    if call.served.resource.custom && call.accepted.shape == Shape::Object {
        // Lists of custom resources always say it.
        metadata["continue"] = json!("");
    }
    if let Some(next) = next {
        metadata["continue"] = json!(next.token);
        if let Some(remaining) = next.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    match call.accepted.shape {
        Shape::Object => {
            let list = render(call, &listed.objects, &metadata);
            if call.accepted.yaml {
                let tree: Value = serde_json::from_slice(&list).unwrap_or_default();
                return object::unstored_answer(call, 200, &tree);
            }
            Ok(answer::json_bytes(200, list))
        }
        Shape::Metadata => {
            let items: Vec<Value> =
                listed.objects.iter().map(|object| object::metadata_only(&object.value())).collect();
            Ok(answer::json(
                200,
                &json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items,
                }),
            ))
        }
        Shape::Table => {
            let mut table = crate::table::Table::new(call);
            for stored in &listed.objects {
                table.add(&object::shown(call, stored));
            }
            Ok(answer::json(200, &table.finish(&metadata)))
        }
    }
}

/// The list as JSON. Objects are rendered already: this only puts them one after another. Items of built-in types do not
/// repeat the type of the list, as upstream's do not; custom ones do.
pub(super) fn render(call: &Call, objects: &[Arc<Stored>], metadata: &Value) -> Bytes {
    let size: usize = objects.iter().map(|object| object.json().len() + 1).sum();
    let mut out = Vec::with_capacity(size + 256);
    out.extend_from_slice(b"{\"kind\":");
    // Rendering into memory does not fail.
    let _ = serde_json::to_writer(&mut out, &call.served.list_kind());
    out.extend_from_slice(b",\"apiVersion\":");
    let _ = serde_json::to_writer(&mut out, &call.served.resource.api_version());
    out.extend_from_slice(b",\"metadata\":");
    let _ = serde_json::to_writer(&mut out, metadata);
    out.extend_from_slice(b",\"items\":[");
    let typed = call.served.custom.is_none();
    for (index, stored) in objects.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if call.served.converts() {
            let mut item = object::shown(call, stored);
            if typed && let Some(members) = item.as_object_mut() {
                members.remove("kind");
                members.remove("apiVersion");
            }
            let _ = serde_json::to_writer(&mut out, &item);
        } else if typed {
            stored.put_untyped(&mut out);
        } else {
            out.extend_from_slice(stored.json());
        }
    }
    out.extend_from_slice(b"]}");
    out.into()
}
