//! Shared access signatures, made here by the published rules.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;

use crate::site::{ACCOUNT_KEY, CALLER, Site, TENANT};

const VERSION: &str = "2021-08-06";
/// The clock of the site stands at 2027-01-15T08:00:00Z.
const END: &str = "2027-01-15T09:00:00Z";
const START: &str = "2027-01-15T07:00:00Z";

fn sign(key: &[u8], text: &str) -> String {
    STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref())
}

fn encoded(parameters: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

/// A signature over one container or blob with a key of the account.
fn service(resource: &str, kind: &str, permissions: &str, end: &str) -> String {
    let text = format!(
        "{permissions}\n{START}\n{end}\n/blob/acct/{resource}\n\n\nhttps\n{VERSION}\n{kind}\n\n\n\n\n\n\n"
    );
    let signature = sign(&STANDARD.decode(ACCOUNT_KEY).unwrap(), &text);
    encoded(&[
        ("sp", permissions),
        ("st", START),
        ("se", end),
        ("spr", "https"),
        ("sv", VERSION),
        ("sr", kind),
        ("sig", &signature),
    ])
}

/// A signature over the account.
fn account(types: &str, permissions: &str) -> String {
    let text = format!("acct\n{permissions}\nb\n{types}\n\n{END}\n\n\n{VERSION}\n\n");
    let signature = sign(&STANDARD.decode(ACCOUNT_KEY).unwrap(), &text);
    encoded(&[
        ("sp", permissions),
        ("ss", "b"),
        ("srt", types),
        ("se", END),
        ("sv", VERSION),
        ("sig", &signature),
    ])
}

async fn send(site: &Site, method: &str, path: &str, body: &'static str) -> (StatusCode, String) {
    let headers = [("authorization", ""), ("x-ms-blob-type", "BlockBlob")];
    let reply = site.storage(method, path, &headers, body).await;
    let code = reply.headers.get("x-ms-error-code").map_or("", |code| code.to_str().unwrap());
    (reply.status, code.to_owned())
}

async fn site() -> Site {
    let site = Site::new();
    let made = site.storage("PUT", "docs?restype=container", &[], "").await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(site.put_blob("docs/a", "text").await.status, StatusCode::CREATED);
    site
}

#[tokio::test]
async fn a_signature_over_a_blob_permits_what_it_names_on_that_blob() {
    let site = site().await;
    let read = service("docs/a", "b", "r", END);
    assert_eq!(send(&site, "GET", &format!("docs/a?{read}"), "").await.0, StatusCode::OK);
    assert_eq!(send(&site, "GET", &format!("docs/b?{read}"), "").await.1, "AuthenticationFailed");
    assert_eq!(
        send(&site, "DELETE", &format!("docs/a?{read}"), "").await,
        (StatusCode::FORBIDDEN, "AuthorizationPermissionMismatch".to_owned())
    );
    let forged = read.replace("sp=r", "sp=rd");
    assert_eq!(send(&site, "DELETE", &format!("docs/a?{forged}"), "").await.1, "AuthenticationFailed");
}

#[tokio::test]
async fn a_signature_over_a_container_covers_its_blobs_and_their_list() {
    let site = site().await;
    let all = service("docs", "c", "rcwdl", END);
    assert_eq!(send(&site, "PUT", &format!("docs/new?{all}"), "x").await.0, StatusCode::CREATED);
    assert_eq!(
        send(&site, "GET", &format!("docs?restype=container&comp=list&{all}"), "").await.0,
        StatusCode::OK
    );
    assert_eq!(
        send(&site, "DELETE", &format!("docs?restype=container&{all}"), "").await.1,
        "AuthorizationResourceTypeMismatch"
    );
}

#[tokio::test]
async fn a_permission_to_create_does_not_overwrite() {
    let site = site().await;
    let create = service("docs", "c", "c", END);
    assert_eq!(send(&site, "PUT", &format!("docs/new?{create}"), "x").await.0, StatusCode::CREATED);
    assert_eq!(
        send(&site, "PUT", &format!("docs/new?{create}"), "y").await.1,
        "AuthorizationPermissionMismatch"
    );
}

#[tokio::test]
async fn a_signature_ends_at_its_expiry_and_with_the_keys_of_the_account() {
    let site = site().await;
    let late = service("docs/a", "b", "r", "2027-01-15T07:59:59Z");
    assert_eq!(send(&site, "GET", &format!("docs/a?{late}"), "").await.1, "AuthenticationFailed");
    let read = service("docs/a", "b", "r", END);
    site.accounts.storage.lock().allow_shared_key = false;
    assert_eq!(
        send(&site, "GET", &format!("docs/a?{read}"), "").await.1,
        "KeyBasedAuthenticationNotPermitted"
    );
}

#[tokio::test]
async fn an_account_signature_covers_the_levels_that_it_names() {
    let site = site().await;
    let blobs = account("o", "rw");
    assert_eq!(send(&site, "GET", &format!("docs/a?{blobs}"), "").await.0, StatusCode::OK);
    assert_eq!(
        send(&site, "PUT", &format!("more?restype=container&{blobs}"), "").await.1,
        "AuthorizationResourceTypeMismatch"
    );
    let containers = account("sc", "lw");
    assert_eq!(
        send(&site, "PUT", &format!("more?restype=container&{containers}"), "").await.0,
        StatusCode::CREATED
    );
    assert_eq!(send(&site, "GET", &format!("?comp=list&{containers}"), "").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_user_delegation_key_signs_no_more_than_the_roles_of_its_user() {
    let site = site().await;
    let info = format!("<KeyInfo><Start>{START}</Start><Expiry>{END}</Expiry></KeyInfo>");
    let asked = site.storage("POST", "?restype=service&comp=userdelegationkey", &[], info).await;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.text());
    let text = asked.text();
    let value = text.split_once("<Value>").unwrap().1.split_once("</Value>").unwrap().0.to_owned();
    let key = STANDARD.decode(value).unwrap();
    let (oid, tid) = (CALLER.to_string(), TENANT.to_string());
    let signed = format!(
        "r\n\n{END}\n/blob/acct/docs/a\n{oid}\n{tid}\n{START}\n{END}\nb\n{VERSION}\n\n\n\n\n\n{VERSION}\nb\n\n\n\n\n\n\n"
    );
    let signature = sign(&key, &signed);
    let query = encoded(&[
        ("sp", "r"),
        ("se", END),
        ("sv", VERSION),
        ("sr", "b"),
        ("skoid", &oid),
        ("sktid", &tid),
        ("skt", START),
        ("ske", END),
        ("sks", "b"),
        ("skv", VERSION),
        ("sig", &signature),
    ]);
    site.accounts.storage.lock().allow_shared_key = false;
    assert_eq!(send(&site, "GET", &format!("docs/a?{query}"), "").await.0, StatusCode::OK);
    site.guard.denied.lock().push("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read");
    assert_eq!(send(&site, "GET", &format!("docs/a?{query}"), "").await.1, "AuthorizationPermissionMismatch");
}
