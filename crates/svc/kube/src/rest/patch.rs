//! Patches: JSON, merge, strategic merge, and server-side apply.

use aro_machinery::apply;
use aro_machinery::patch::{self, PatchError};
use aro_machinery::status::Status;
use aro_machinery::{decode, meta};
use serde_json::{Value, json};

use super::call::Call;
use super::create::{check_place, create_object};
use super::update::{carry_over, change};
use crate::http::answer::Answer;

pub(super) async fn patch(call: &mut Call) -> Result<Answer, Status> {
    match call.content_type().as_str() {
        "application/apply-patch+yaml" => server_side_apply(call).await,
        "application/json-patch+json" => by(call, |object, patch, _| patch::json_patch(object, patch)).await,
        "application/merge-patch+json" => by(call, |object, patch, _| Ok(patch::merge_patch(object, patch))).await,
        "application/strategic-merge-patch+json" if !call.served.resource.custom => {
            by(call, |object, patch, call| patch::strategic_merge(object, patch, call.served.typed())).await
        }
        _ => {
            let strategic = if call.served.resource.custom { "" } else { "application/strategic-merge-patch+json, " };
            Err(Status::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml, application/apply-patch+cbor"
            )))
        }
    }
}

async fn by(
    call: &mut Call,
    patch: impl Fn(&Value, &Value, &Call) -> Result<Value, PatchError>,
) -> Result<Answer, Status> {
    let body = call.body.clone();
    let (body, _) = decode::parse(&body).map_err(Status::bad_request)?;
    let written = change(call, |call, live| {
        let mut new = patch(live, &body, call).map_err(|error| error.status())?;
        if meta::name(&new) != meta::name(live) && !meta::name(&new).is_empty() {
            return Err(Status::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                meta::name(&new),
                call.name
            )));
        }
        // A patch says what it means by a version; without one, it means whatever is there.
        if meta::resource_version(&new) == meta::resource_version(live) {
            let named = meta::resource_version(&body);
            meta::set(&mut new, &["metadata", "resourceVersion"], json!(named));
        }
        call.retype(&mut new)?;
        check_place(call, &mut new)?;
        carry_over(&mut new, live);
        super::create::dedup_owners(call, &mut new);
        call.track(Some(live), &mut new);
        Ok(Some(new))
    })
    .await?;
    written.answer(call, 200)
}

async fn server_side_apply(call: &mut Call) -> Result<Answer, Status> {
    let manager = call.manager();
    let force = call.query.flag("force");
    let body = call.body.clone();
    let (mut config, duplicates) =
        decode::parse_yaml(&body).map_err(|problem| Status::bad_request(format!("error decoding YAML: {problem}")))?;
    if !config.is_object() {
        return Err(Status::bad_request("error decoding YAML: the configuration must be an object"));
    }
    check_config(call, &mut config, &duplicates)?;
    let key = call.key();
    // Whoever deletes it in between makes this a creation, and the other way round.
    for _ in 0..8 {
        if call.latest(&key).is_some() {
            let applied = change(call, |call, live| apply_to(call, Some(live), &config, &manager, force)).await;
            match applied {
                Err(status) if status.code == 404 => {}
                applied => return applied?.answer(call, 200),
            }
        }
        if !call.subresource.is_empty() {
            return Err(call.not_found());
        }
        let uid = meta::uid(&config);
        if !uid.is_empty() {
            let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(&call.resource_name(), &call.name, why));
        }
        let Some(object) = apply_to(call, None, &config, &manager, force)? else { return Err(call.not_found()) };
        match create_object(call, object).await {
            Err(status) if status.reason == "AlreadyExists" => {}
            created => return created?.answer(call, 201),
        }
    }
    Err(Status::conflict(&call.resource_name(), &call.name, "the object keeps changing; try again"))
}

fn check_config(call: &mut Call, config: &mut Value, duplicates: &[String]) -> Result<(), Status> {
    let gvk = call.served.resource.gvk.clone();
    let (api_version, kind) = (meta::api_version(config).to_owned(), meta::kind(config).to_owned());
    if api_version.is_empty() || kind.is_empty() {
        return Err(Status::bad_request("invalid object type: both apiVersion and kind are required"));
    }
    if api_version != gvk.api_version() || kind != gvk.kind {
        return Err(Status::bad_request(format!(
            "invalid object type: {api_version}, Kind={kind}, expected {}, Kind={}",
            gvk.api_version(),
            gvk.kind
        )));
    }
    if let super::object::Strictness::Strict = call.strictness()?
        && !duplicates.is_empty()
    {
        return Err(Status::bad_request(decode::strict_error(&[], duplicates)));
    }
    let name = meta::name(config).to_owned();
    if name.is_empty() {
        meta::set(config, &["metadata", "name"], json!(call.name));
    } else if name != call.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    check_place(call, config)?;
    // What the type does not have is refused or dropped; defaults are not the applier's to own.
    let unknown = match &call.served.custom {
        Some(custom) => custom.compiled.prune(config),
        None => decode::coerce(config, call.served.typed()).map_err(|problem| {
            Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {problem}",
                gvk.kind, gvk.version, gvk.kind
            ))
        })?,
    };
    if !unknown.is_empty() {
        match call.strictness()? {
            super::object::Strictness::Strict => {
                return Err(Status::bad_request(decode::strict_error(&unknown, &[])));
            }
            super::object::Strictness::Warn => call.warnings.extend(decode::warnings(&unknown, &[])),
            super::object::Strictness::Ignore => {}
        }
    }
    Ok(())
}

fn apply_to(
    call: &mut Call,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Option<Value>, Status> {
    let merged = call.with_context(manager, force, |context| apply::apply(live, config, context));
    let mut merged = match merged {
        Ok(Some(merged)) => merged,
        Ok(None) => return Ok(None),
        Err(error) => return Err(error.status()),
    };
    call.retype(&mut merged)?;
    if let Some(live) = live {
        let named = meta::resource_version(config).to_owned();
        carry_over(&mut merged, live);
        meta::set(&mut merged, &["metadata", "resourceVersion"], json!(named));
    }
    Ok(Some(merged))
}
