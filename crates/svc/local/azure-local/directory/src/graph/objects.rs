//! Reads.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::filter::Filter;
use super::{Answer, Call, Refused, applications, bad_request, not_found, render};
use crate::model::Application;

/// Graph's own largest page; a directory of this kind has fewer objects.
const MOST: usize = 999;

fn filter(call: &Call<'_>) -> Result<Option<Filter>, Refused> {
    let Some(text) = call.head.parameter("$filter") else { return Ok(None) };
    let parsed = Filter::parse(text);
    parsed.map(Some).ok_or_else(|| bad_request("Invalid or unsupported filter clause.".to_owned()))
}

/// How many to show, and the number to leave out: `$top` and `$skiptoken`.
fn page(call: &Call<'_>) -> Result<(usize, usize), Refused> {
    let number = |name: &str, default: usize| match call.head.parameter(name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| bad_request(format!("Invalid value of {name}."))),
    };
    Ok((number("$skiptoken", 0)?, number("$top", 100)?.clamp(1, MOST)))
}

fn paged(call: &Call<'_>, kind: &str, found: Vec<Value>) -> Answer {
    let (skip, size) = page(call)?;
    let more = found.len() > skip.saturating_add(size);
    let items = found.into_iter().skip(skip).take(size).collect();
    let mut body = render::list(call, kind, items);
    if more {
        let filter = call.head.parameter("$filter").map_or(String::new(), |filter| {
            format!(
                "&$filter={}",
                url::form_urlencoded::byte_serialize(filter.as_bytes()).collect::<String>()
            )
        });
        let next = skip + size;
        body["@odata.nextLink"] =
            json!(format!("https://{}/v1.0/{kind}?$top={size}&$skiptoken={next}{filter}", call.head.host));
    }
    Ok((StatusCode::OK, body))
}

pub(super) fn list_principals(call: &Call<'_>) -> Answer {
    let (filter, tenant) = (filter(call)?, call.caller.tenant);
    let all = call.directory.0.model.read().principals_of(tenant);
    let holds = |application: &&Arc<Application>| {
        let property = |name: &str| match name {
            "appid" => vec![application.app_id.to_string()],
            "id" => application.principal_in(tenant).iter().map(Uuid::to_string).collect(),
            "displayname" => vec![application.display_name.clone()],
            "serviceprincipalnames" => render::principal_names(application),
            _ => vec![],
        };
        filter.as_ref().is_none_or(|filter| filter.holds(&property))
    };
    let found = all.iter().filter(holds).map(|application| render::principal(application, tenant));
    paged(call, "servicePrincipals", found.collect())
}

pub(super) fn list_applications(call: &Call<'_>) -> Answer {
    let filter = filter(call)?;
    let all = call.directory.0.model.read().applications_of(call.caller.tenant);
    let holds = |application: &&Arc<Application>| {
        let property = |name: &str| match name {
            "appid" => vec![application.app_id.to_string()],
            "id" => vec![application.object_id.to_string()],
            "displayname" => vec![application.display_name.clone()],
            "identifieruris" => application.identifier_uris.clone(),
            _ => vec![],
        };
        application.resource_id().is_none() && filter.as_ref().is_none_or(|filter| filter.holds(&property))
    };
    paged(call, "applications", all.iter().filter(holds).map(|found| render::application(found)).collect())
}

pub(super) fn get_principal(call: &Call<'_>, id: &str) -> Answer {
    let tenant = call.caller.tenant;
    let object_id = Uuid::try_parse(id).map_err(|_| not_found(id))?;
    let found = call.directory.find_principal(tenant, object_id).ok_or_else(|| not_found(id))?;
    Ok((StatusCode::OK, render::one(call, "servicePrincipals", render::principal(&found, tenant))))
}

pub(super) fn get_application(call: &Call<'_>, id: &str) -> Answer {
    let found = call.own_application(id)?;
    Ok((StatusCode::OK, render::one(call, "applications", render::application(&found))))
}

/// `servicePrincipals(appId='…')` and `applications(appId='…')`.
pub(super) fn by_app_id(call: &Call<'_>, part: &str) -> Answer {
    let app_id = applications::key_of(part).and_then(|id| Uuid::try_parse(id).ok());
    let Some(app_id) = app_id else { return Err(not_found(part)) };
    if part.starts_with("applications(") {
        return get_application(call, part);
    }
    let tenant = call.caller.tenant;
    let found = call.directory.find_application(app_id).filter(|found| found.principal_in(tenant).is_some());
    let found = found.filter(|_| part.starts_with("serviceprincipals(")).ok_or_else(|| not_found(part))?;
    Ok((StatusCode::OK, render::one(call, "servicePrincipals", render::principal(&found, tenant))))
}

pub(super) fn organization(call: &Call<'_>) -> Answer {
    let tenant = call.directory.find_tenant(&call.caller.tenant.to_string());
    let tenant = tenant.ok_or_else(|| not_found("organization"))?;
    let domains: Vec<Value> = tenant
        .domains
        .iter()
        .enumerate()
        .map(|(index, name)| json!({"name": name, "isDefault": index == 0, "isInitial": index == 0, "type": "Managed"}))
        .collect();
    let item = json!({"id": tenant.id, "displayName": tenant.display_name, "verifiedDomains": domains});
    Ok((StatusCode::OK, render::list(call, "organization", vec![item])))
}

/// `directoryObjects/getByIds`: the objects that exist, of those asked for.
pub(super) fn by_ids(call: &Call<'_>, body: &Value) -> Answer {
    let ids = body.get("ids").and_then(Value::as_array).filter(|ids| ids.len() <= 1000);
    let ids = ids.ok_or_else(|| bad_request("The body must name up to 1000 ids.".to_owned()))?;
    let tenant = call.caller.tenant;
    let found = ids
        .iter()
        .filter_map(|id| Uuid::try_parse(id.as_str()?).ok())
        .filter_map(|id| call.directory.find_principal(tenant, id))
        .map(|application| render::principal(&application, tenant));
    Ok((StatusCode::OK, render::list(call, "directoryObjects", found.collect())))
}
