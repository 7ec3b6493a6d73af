//! Patches: JSON, merge, strategic merge, and server-side apply.

use aro_kube_apimachinery::apply;
use aro_kube_apimachinery::patch::{self, PatchError};
use aro_kube_apimachinery::status::{Details, Status};
use aro_kube_apimachinery::{decode, meta};
use serde_json::{Value, json};

use super::call::Call;
use super::create::{check_place, create_object, refuse_elsewhere};
use super::update::{carry_over, change};
use crate::http::answer::Answer;

pub(super) async fn patch(call: &mut Call) -> Result<Answer, Status> {
    match call.content_type().as_str() {
        "application/apply-patch+yaml" => server_side_apply(call).await,
        "application/json-patch+json" => by(call, |object, patch, _| patch::json_patch(object, patch)).await,
        "application/merge-patch+json" => {
            by(call, |object, patch, _| Ok(patch::merge_patch(object, patch))).await
        }
        "application/strategic-merge-patch+json" if !call.served.resource.custom => {
            by(call, |object, patch, call| patch::strategic_merge(object, patch, call.served.typed())).await
        }
        _ => {
            // For built-in resources upstream's router refuses before anybody could say what is possible.
            if !call.served.resource.custom {
                return Err(Status::unsupported_media_type("415: Unsupported Media Type")
                    .with_details(Details::default()));
            }
            Err(Status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ))
        }
    }
}

async fn by(
    call: &mut Call,
    patch: impl Fn(&Value, &Value, &Call) -> Result<Value, PatchError>,
) -> Result<Answer, Status> {
    let body = call.body.clone();
    let json = call.content_type() == "application/json-patch+json";
    let (body, _) = decode::parse(&body).map_err(|problem| {
        Status::bad_request(if json { problem } else { format!("error decoding patch: {problem}") })
    })?;
    let strategic = call.content_type() == "application/strategic-merge-patch+json";
    if !json && !body.is_object() {
        let what = if body.is_array() {
            "array"
        } else if body.is_string() {
            "string"
        } else {
            "number"
        };
        let problem =
            format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
        return Err(Status::bad_request(if strategic {
            problem
        } else {
            format!("error decoding patch: {problem}")
        }));
    }
    let written = change(call, |call, live| {
        let patched = |call: &Call| {
            let mut new = patch(live, &body, call).map_err(|error| error.status())?;
            // A patch says what it means by a version; without one, it means whatever is there.
            if meta::resource_version(&new) == meta::resource_version(live) {
                let named = meta::resource_version(&body);
                meta::set(&mut new, &["metadata", "resourceVersion"], json!(named));
            }
            Ok::<_, Status>(new)
        };
        let mut new = patched(call)?;
        if meta::name(&new) != meta::name(live) && !meta::name(&new).is_empty() {
            return Err(Status::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                meta::name(&new),
                call.name
            )));
        }
        let kept = take_unchanged(call, &mut new, live);
        let unknown = call.retype(&mut new, |call| {
            let whole = || patched(call).map(|object| object.to_string()).unwrap_or_default();
            if strategic { patch::show(&body) } else { whole() }
        })?;
        if let Some(members) = new.as_object_mut() {
            members.extend(kept);
        }
        check_place(call, &mut new)?;
        carry_over(&mut new, live);
        super::create::dedup_owners(call, &mut new);
        call.track(Some(live), &mut new);
        if unknown && call.served.resource.custom {
            // Upstream reads the patched object by its type before it drops what is unknown, fails, and forgets all owners.
            meta::remove(&mut new, &["metadata", "managedFields"]);
        }
        Ok(Some(new))
    })
    .await?;
    written.answer(call, 200)
}

/// Takes out what the patch left as it was: it is of its type already, with all defaults.
fn take_unchanged(call: &Call, new: &mut Value, live: &Value) -> Vec<(String, Value)> {
    // Defaults of custom types may look across members. A Secret's plain text becomes part of its data.
    if call.served.resource.custom || new.get("stringData").is_some() {
        return Vec::new();
    }
    let Some(members) = new.as_object_mut() else { return Vec::new() };
    let same = |name: &String, value: &mut Value| {
        !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") && live.get(name) == Some(&*value)
    };
    let names: Vec<String> =
        members.iter_mut().filter_map(|(name, value)| same(name, value).then(|| name.clone())).collect();
    names.into_iter().filter_map(|name| members.remove_entry(&name)).collect()
}

async fn server_side_apply(call: &mut Call) -> Result<Answer, Status> {
    let manager = call.manager();
    let force = call.query.flag("force");
    let body = call.body.clone();
    let (mut config, duplicates) = decode::parse_yaml(&body).map_err(|problem| {
        Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {problem}"))
    })?;
    if !config.is_object() {
        let what = if config.is_array() {
            "array"
        } else if config.is_string() {
            "string"
        } else {
            "number"
        };
        return Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
        )));
    }
    check_config(call, &mut config, &duplicates)?;
    let key = call.key();
    // A concurrent delete turns this into a creation, and the other way round.
    for _ in 0..8 {
        if call.latest(&key).is_some() {
            let applied =
                change(call, |call, live| apply_to(call, Some(live), &config, &manager, force)).await;
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
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Status::conflict(&call.resource_name(), &call.name, why));
        }
        let Some(object) = apply_to(call, None, &config, &manager, force)? else {
            return Err(call.not_found());
        };
        match create_object(call, object).await {
            Err(status) if status.reason == "AlreadyExists" => {}
            created => return created?.answer(call, 201),
        }
    }
    Err(Status::conflict(&call.resource_name(), &call.name, "the object keeps changing; try again"))
}

fn check_config(call: &mut Call, config: &mut Value, duplicates: &[String]) -> Result<(), Status> {
    if let super::object::Strictness::Strict = call.strictness()
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
    refuse_elsewhere(call, config)
}

fn apply_to(
    call: &mut Call,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Option<Value>, Status> {
    let apply =
        |call: &Call| call.with_context(manager, force, |context| apply::apply(live, config, context));
    let mut merged = match apply(call) {
        Ok(Some(merged)) => merged,
        Ok(None) => return Ok(None),
        Err(error) => return Err(error.status()),
    };
    // Written by us just now: as its type wants it.
    let owners = meta::remove(&mut merged, &["metadata", "managedFields"]);
    // What errors show is built again, because it is rarely needed.
    call.retype(&mut merged, |call| {
        apply(call).ok().flatten().map(|whole| whole.to_string()).unwrap_or_default()
    })?;
    if let Some(owners) = owners {
        meta::set(&mut merged, &["metadata", "managedFields"], owners);
    }
    check_place(call, &mut merged)?;
    if let Some(live) = live {
        let named = meta::resource_version(config).to_owned();
        carry_over(&mut merged, live);
        meta::set(&mut merged, &["metadata", "resourceVersion"], json!(named));
    }
    Ok(Some(merged))
}
