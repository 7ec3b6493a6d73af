//! Key Vault: secrets, keys and certificates with versions and soft delete.
//!
//! A request is authenticated, matched against the table in [`routes`], authorized by that table's action, and only then its
//! body is read. An object is one document with its state, and one document for each version.

mod attributes;
mod certificates;
mod crypto;
mod documents;
mod error;
mod jwk;
mod keys;
mod objects;
mod policy;
mod render;
mod routes;
mod secrets;
mod self_signed;
mod store;

use std::sync::Arc;

use aro_base::SharedClock;
use aro_web::BodyLimits;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

pub use store::KeyVaultStore;

use crate::guard::{Accounts, Guard, Principal, Refusal, Vault};
use crate::http::{Head, read_body};
use error::VaultError;
use routes::{Operation, Route};

const AUDIENCE: &str = "https://vault.azure.net";

/// What a handler answers.
type Answer = Result<(StatusCode, Value), VaultError>;

struct Service {
    store: KeyVaultStore,
    accounts: Arc<dyn Accounts>,
    guard: Arc<dyn Guard>,
    bodies: BodyLimits,
    clock: SharedClock,
    login_host: String,
}

/// A request of an authorized caller.
struct Call<'a> {
    store: &'a KeyVaultStore,
    vault: &'a Vault,
    /// `https://<host>`: what ids begin with.
    base: String,
    now: aro_base::Timestamp,
    head: &'a Head,
    body: Value,
}

/// Key Vault's data plane. `login_host` is the host of the login endpoint in challenges.
pub fn keyvault_router(
    store: KeyVaultStore,
    accounts: Arc<dyn Accounts>,
    guard: Arc<dyn Guard>,
    bodies: BodyLimits,
    clock: SharedClock,
    login_host: String,
) -> Router {
    let service = Service { store, accounts, guard, bodies, clock, login_host };
    Router::new().fallback(serve).with_state(Arc::new(service))
}

async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(head) = Head::of(parts) else {
        return refused(&VaultError::bad("The request does not name a vault."));
    };
    let Some(vault) = service.accounts.vault(&head.account).await else {
        return refused(&VaultError::vault_not_found(&head.account));
    };
    let caller = match head.bearer() {
        None => return challenge(&service, &vault, "AKV10000: Request is missing a Bearer or PoP token."),
        Some(token) => match service.guard.authenticate(token, AUDIENCE).await {
            Ok(caller) if caller.tenant_id == vault.tenant_id => caller,
            Ok(_) => {
                return challenge(
                    &service,
                    &vault,
                    "AKV10032: Invalid issuer. The token is of another tenant.",
                );
            }
            Err(Refusal::Unavailable) => return refused(&VaultError::unavailable()),
            Err(_) => {
                return challenge(
                    &service,
                    &vault,
                    "[TokenExpired] Error validating token: the token is not valid.",
                );
            }
        },
    };
    match handle(&service, &vault, &caller, &head, body).await {
        Ok((StatusCode::NO_CONTENT, _)) => StatusCode::NO_CONTENT.into_response(),
        Ok((status, body)) => (status, axum::Json(body)).into_response(),
        Err(error) => refused(&error),
    }
}

fn challenge(service: &Service, vault: &Vault, message: &str) -> Response {
    let body = json!({"error": {"code": "Unauthorized", "message": message}});
    let mut response = (StatusCode::UNAUTHORIZED, axum::Json(body)).into_response();
    let (host, tenant) = (&service.login_host, vault.tenant_id);
    let value = format!("Bearer authorization=\"https://{host}/{tenant}\", resource=\"{AUDIENCE}\"");
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
    response
}

fn refused(error: &VaultError) -> Response {
    (error.status, axum::Json(error.json())).into_response()
}

/// Versions 7.0 and later, and versions by date.
fn check_api_version(head: &Head) -> Result<(), VaultError> {
    let version =
        head.parameter("api-version").ok_or_else(|| VaultError::bad("api-version must be specified"))?;
    // Previews are `7.6-preview.2`.
    let number = version.split_once("-preview").map_or(version, |(number, _)| number);
    let numbered =
        number.split_once('.').is_some_and(|(major, minor)| major == "7" && minor.parse::<u8>().is_ok());
    let date = version.get(..10).unwrap_or_default();
    let dated = date >= "2025-07-01" && date.parse::<jiff::civil::Date>().is_ok();
    if numbered || dated {
        Ok(())
    } else {
        Err(VaultError::bad("The specified api-version is not supported."))
    }
}

async fn handle(service: &Service, vault: &Vault, caller: &Principal, head: &Head, body: Body) -> Answer {
    check_api_version(head)?;
    let (route, names) = routes::find(&head.method, &head.path).ok_or_else(VaultError::no_route)?;
    authorize(service, vault, caller, route, &names).await?;
    let held = read_body(&service.bodies, body).await.map_err(VaultError::unread_body)?;
    let bytes = held.bytes();
    let body = if bytes.is_empty() {
        json!({})
    } else {
        serde_json::from_slice(&bytes).map_err(|_| VaultError::bad("The request body is not valid JSON."))?
    };
    if !body.is_object() {
        return Err(VaultError::bad("The request body must be a JSON object."));
    }
    let base = format!("https://{}", head.host);
    let call = Call { store: &service.store, vault, base, now: service.clock.now(), head, body };
    perform(&call, route.operation, &names).await
}

/// Role assignments or access policies decide, as the vault is configured.
async fn authorize(
    service: &Service,
    vault: &Vault,
    caller: &Principal,
    route: &Route,
    names: &[String],
) -> Result<(), VaultError> {
    if vault.rbac {
        let scope = match names.first() {
            Some(name) => format!("{}/{}/{name}", vault.resource_id, route.collection),
            None => vault.resource_id.clone(),
        };
        return service.guard.authorize(caller, &scope, route.action).await.map_err(
            |refusal| match refusal {
                Refusal::Unavailable => VaultError::unavailable(),
                Refusal::Forbidden { message } => VaultError::forbidden("ForbiddenByRbac", &message),
                Refusal::Unauthenticated => VaultError::forbidden(
                    "ForbiddenByRbac",
                    "Caller is not authorized to perform action on resource.",
                ),
            },
        );
    }
    let allowed =
        vault.access_policies.iter().filter(|policy| policy.object_id == caller.object_id).any(|policy| {
            let permissions = match route.collection {
                "keys" => &policy.keys,
                "secrets" => &policy.secrets,
                _ => &policy.certificates,
            };
            permissions
                .iter()
                .any(|own| own.eq_ignore_ascii_case(route.permission) || own.eq_ignore_ascii_case("all"))
        });
    if allowed {
        return Ok(());
    }
    let message = format!(
        "The user, group or application 'appid={};oid={}' does not have {} {} permission on key vault '{}'.",
        caller.app_id, caller.object_id, route.collection, route.permission, vault.resource_id
    );
    Err(VaultError::forbidden("AccessDenied", &message))
}

async fn perform(call: &Call<'_>, operation: Operation, names: &[String]) -> Answer {
    let name = names.first().map_or("", String::as_str);
    let version = names.get(1).map_or("", String::as_str);
    match operation {
        Operation::SetSecret => secrets::set(call, name).await,
        Operation::GetSecret => secrets::get(call, name, version).await,
        Operation::CreateKey => keys::create(call, name).await,
        Operation::ImportKey => keys::import(call, name).await,
        Operation::UseKey(usage) => keys::perform(call, name, version, usage).await,
        Operation::CreateCertificate => certificates::create(call, name).await,
        Operation::ImportCertificate => certificates::import(call, name).await,
        Operation::GetPolicy => certificates::get_policy(call, name).await,
        Operation::UpdatePolicy => certificates::update_policy(call, name).await,
        Operation::GetPending => certificates::get_pending(call, name).await,
        Operation::DeletePending => certificates::delete_pending(call, name).await,
        Operation::ListIssuers => Ok((StatusCode::OK, json!({"value": [], "nextLink": null}))),
        Operation::Get(kind) => objects::get(call, kind, name, version).await,
        Operation::Update(kind) => objects::update(call, kind, name, version).await,
        Operation::List(kind) => objects::list(call, kind).await,
        Operation::ListVersions(kind) => objects::list_versions(call, kind, name).await,
        Operation::Delete(kind) => objects::delete(call, kind, name).await,
        Operation::GetDeleted(kind) => objects::get_deleted(call, kind, name).await,
        Operation::ListDeleted(kind) => objects::list_deleted(call, kind).await,
        Operation::Recover(kind) => objects::recover(call, kind, name).await,
        Operation::Purge(kind) => objects::purge(call, kind, name).await,
    }
}
