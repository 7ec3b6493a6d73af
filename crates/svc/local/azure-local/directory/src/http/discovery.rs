//! Metadata of the login endpoint: where its parts are, and the keys of its tokens.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Head, json as answer};
use crate::Directory;

/// Names that stand for any tenant.
const ANY_TENANT: [&str; 2] = ["common", "organizations"];

/// The tenant in URLs of answers; `None` if there is no such tenant.
fn tenant_name(directory: &Directory, name: &str) -> Option<String> {
    if ANY_TENANT.contains(&name) {
        return Some(name.to_owned());
    }
    directory.find_tenant(name).map(|tenant| tenant.id.to_string())
}

/// The OpenID configuration of a tenant, in the endpoint's version.
pub(super) fn metadata(directory: &Directory, tenant: &str, host: &str, version: u8) -> Option<Value> {
    let name = tenant_name(directory, tenant)?;
    let id = if ANY_TENANT.contains(&name.as_str()) { "{tenantid}" } else { &name };
    let login_host = &directory.settings().login_host;
    let base = format!("https://{host}/{name}");
    let (issuer, oauth, keys) = match version {
        2 => (format!("https://{login_host}/{id}/v2.0"), "oauth2/v2.0", "discovery/v2.0/keys"),
        _ => (format!("https://sts.windows.net/{id}/"), "oauth2", "discovery/keys"),
    };
    Some(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{base}/{oauth}/authorize"),
        "token_endpoint": format!("{base}/{oauth}/token"),
        "device_authorization_endpoint": format!("{base}/{oauth}/devicecode"),
        "end_session_endpoint": format!("{base}/{oauth}/logout"),
        "jwks_uri": format!("{base}/{keys}"),
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt", "client_secret_basic"],
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": ["token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "claims_supported": ["sub", "iss", "aud", "exp", "iat", "nbf", "tid", "oid", "ver"],
        "tenant_region_scope": Value::Null,
        "cloud_instance_name": "microsoftonline.com",
        "cloud_graph_host_name": "graph.windows.net",
        "msgraph_host": "graph.microsoft.com",
        "rbac_url": "https://pas.windows.net",
    }))
}

/// The published keys.
pub(super) fn keys(directory: &Directory, tenant: &str) -> Option<Value> {
    tenant_name(directory, tenant)?;
    Some(json!({"keys": directory.public_keys()}))
}

/// Which hosts are one cloud.
pub(super) fn instance(directory: &Directory, head: &Head) -> Response {
    // The client asks about the authority it was configured with; its tenant's metadata is on the host that it reached.
    let asked = head.parameter("authorization_endpoint").and_then(|text| url::Url::parse(text).ok());
    let tenant = asked.as_ref().and_then(|url| url.path_segments()?.next()).unwrap_or("common");
    let Some(name) = tenant_name(directory, &tenant.to_ascii_lowercase()) else {
        let body = json!({"error": "invalid_instance", "error_description": "AADSTS50049: Unknown or invalid instance.", "error_codes": [50_049]});
        return answer(StatusCode::BAD_REQUEST, &body);
    };
    let host = &head.host;
    let known = ["login.microsoftonline.com", "login.windows.net", "login.microsoft.com", "sts.windows.net"];
    let mut clouds = vec![json!({
        "preferred_network": "login.microsoftonline.com",
        "preferred_cache": "login.windows.net",
        "aliases": known,
    })];
    if !known.contains(&host.as_str()) {
        clouds.push(json!({"preferred_network": host, "preferred_cache": host, "aliases": [host]}));
    }
    let body = json!({
        "tenant_discovery_endpoint": format!("https://{host}/{name}/v2.0/.well-known/openid-configuration"),
        "api-version": "1.1",
        "metadata": clouds,
    });
    answer(StatusCode::OK, &body)
}
