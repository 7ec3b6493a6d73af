use aro_azure_local_data_plane::AccessPolicy;
use aro_base::SignedDuration;
use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::site::{CALLER, Site, TENANT, VAULT_ID};

#[tokio::test]
async fn a_secret_has_versions_attributes_and_tags() {
    let site = Site::new();
    let body = json!({"value": "one", "tags": {"a": "b"}, "contentType": "text/plain", "attributes": {"nbf": 1, "exp": 2_000_000_000}});
    let first = site.kv("PUT", "secrets/My-Secret", Some(body)).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text());
    let id = first.body["id"].as_str().unwrap();
    let version = id.strip_prefix("https://kv.vault.azure.net/secrets/My-Secret/").unwrap().to_owned();
    assert_eq!(version.len(), 32);
    site.kv("PUT", "secrets/my-secret", Some(json!({"value": "two"}))).await;
    let newest = site.kv("GET", "secrets/MY-secret", None).await;
    assert_eq!(newest.body["value"], "two");
    assert!(newest.body["id"].as_str().unwrap().contains("/secrets/My-Secret/"), "as it was first spelled");
    assert_eq!(site.kv("GET", "secrets/My-Secret/", None).await.body["value"], "two");
    let old = site.kv("GET", &format!("secrets/my-secret/{version}"), None).await;
    assert_eq!((&old.body["value"], &old.body["tags"]), (&json!("one"), &json!({"a": "b"})));
    assert_eq!(old.body["attributes"]["exp"], 2_000_000_000);
    assert_eq!(old.body["attributes"]["recoverableDays"], 7);
    let versions = site.kv("GET", "secrets/my-secret/versions", None).await;
    assert_eq!(versions.body["value"].as_array().unwrap().len(), 2);
    assert!(!versions.text().contains("one"), "lists show no values");

    let patch = json!({"attributes": {"enabled": false}});
    let patched = site.kv("PATCH", &format!("secrets/my-secret/{version}"), Some(patch)).await;
    assert_eq!((patched.status, patched.body.get("value")), (StatusCode::OK, None));
    let disabled = site.kv("GET", &format!("secrets/my-secret/{version}"), None).await;
    assert_eq!((disabled.status, disabled.code()), (StatusCode::FORBIDDEN, "Forbidden"));
    assert_eq!(disabled.body["error"]["innererror"]["code"], "SecretDisabled");
    let missing = site.kv("GET", "secrets/none", None).await;
    assert_eq!((missing.status, missing.code()), (StatusCode::NOT_FOUND, "SecretNotFound"));
}

#[tokio::test]
async fn a_deleted_secret_blocks_its_name_until_it_is_recovered_or_purged() {
    let site = Site::new();
    site.kv("PUT", "secrets/s", Some(json!({"value": "v"}))).await;
    let deleted = site.kv("DELETE", "secrets/s", None).await;
    assert_eq!(deleted.body["recoveryId"], "https://kv.vault.azure.net/deletedsecrets/s");
    assert!(deleted.body["scheduledPurgeDate"].is_i64() && deleted.body.get("value").is_none());
    assert_eq!(site.kv("GET", "secrets/s", None).await.code(), "SecretNotFound");
    let conflict = site.kv("PUT", "secrets/s", Some(json!({"value": "w"}))).await;
    assert_eq!(
        (conflict.status, &conflict.body["error"]["innererror"]["code"]),
        (StatusCode::CONFLICT, &json!("ObjectIsDeletedButRecoverable"))
    );
    let listed = site.kv("GET", "deletedsecrets", None).await;
    assert_eq!(listed.body["value"].as_array().unwrap().len(), 1);
    assert_eq!(site.kv("GET", "secrets", None).await.body["value"], json!([]));

    let site = site.restart();
    assert_eq!(site.kv("POST", "deletedsecrets/s/recover", None).await.status, StatusCode::OK);
    assert_eq!(site.kv("GET", "secrets/s", None).await.body["value"], "v");
    site.kv("DELETE", "secrets/s", None).await;
    site.accounts.vault.lock().purge_protection = true;
    assert_eq!(site.kv("DELETE", "deletedsecrets/s", None).await.status, StatusCode::FORBIDDEN);
    site.accounts.vault.lock().purge_protection = false;
    assert_eq!(site.kv("DELETE", "deletedsecrets/s", None).await.status, StatusCode::NO_CONTENT);
    assert_eq!(site.kv("GET", "deletedsecrets/s", None).await.status, StatusCode::NOT_FOUND);
    site.kv("PUT", "secrets/s", Some(json!({"value": "new"}))).await;
    let versions = site.kv("GET", "secrets/s/versions", None).await;
    assert_eq!(versions.body["value"].as_array().unwrap().len(), 1, "old versions are gone");
    site.kv("DELETE", "secrets/s", None).await;
    site.advance(SignedDuration::from_hours(8 * 24));
    assert_eq!(
        site.kv("PUT", "secrets/s", Some(json!({"value": "later"}))).await.status,
        StatusCode::OK,
        "purged by time"
    );
}

#[tokio::test]
async fn lists_are_paged() {
    let site = Site::new();
    for index in 0..30 {
        site.kv("PUT", &format!("secrets/s{index}"), Some(json!({"value": "v"}))).await;
    }
    let (mut names, mut path) = (Vec::new(), "secrets".to_owned());
    loop {
        let page = site.kv("GET", &path, None).await.body;
        names.extend(
            page["value"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["nextLink"].as_str() else { break };
        path = next.strip_prefix("https://kv.vault.azure.net/").unwrap().to_owned();
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 30);
    assert_eq!(site.kv("GET", "secrets?maxresults=0", None).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(site.kv("GET", "secrets?$skiptoken=junk", None).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_request_is_challenged_versioned_and_authorized() {
    let site = Site::new();
    let send = |uri: &'static str, host: &'static str, token: Option<&'static str>| {
        let mut request = Request::get(uri).header("host", host);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        site.send(site.keyvault(), request.body(Body::empty()).unwrap())
    };
    let (uri, host, token) = ("/secrets?api-version=7.4", "kv.vault.azure.net", "https://vault.azure.net");
    for token in [None, Some("wrong"), Some("foreign https://vault.azure.net")] {
        let reply = send(uri, host, token).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::UNAUTHORIZED, "Unauthorized"), "{token:?}");
        let expected = format!(
            "Bearer authorization=\"https://login.microsoftonline.com/{TENANT}\", resource=\"https://vault.azure.net\""
        );
        assert_eq!(reply.headers["www-authenticate"], expected.as_str());
    }
    assert_eq!(send(uri, "other.vault.azure.net", Some(token)).await.code(), "VaultNotFound");
    assert_eq!(send("/secrets", host, Some(token)).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(send("/secrets?api-version=6.0", host, Some(token)).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(send("/secrets?api-version=2025-07-01", host, Some(token)).await.status, StatusCode::OK);
    assert_eq!(send("/nothing?api-version=7.4", host, Some(token)).await.status, StatusCode::NOT_FOUND);

    site.guard.asked.lock().clear();
    site.kv("PUT", "secrets/s", Some(json!({"value": "v"}))).await;
    let (scope, action) = site.guard.asked.lock().pop().unwrap();
    assert_eq!(
        (scope.as_str(), action.name, action.is_data),
        (&*format!("{VAULT_ID}/secrets/s"), "Microsoft.KeyVault/vaults/secrets/setSecret/action", true)
    );
    site.guard.denied.lock().push("Microsoft.KeyVault/vaults/secrets/getSecret/action");
    let denied = site.kv("GET", "secrets/s", None).await;
    assert_eq!(
        (denied.status, &denied.body["error"]["innererror"]["code"]),
        (StatusCode::FORBIDDEN, &json!("ForbiddenByRbac"))
    );
}

#[tokio::test]
async fn access_policies_decide_in_a_vault_without_role_assignments() {
    let site = Site::new();
    site.set_policy(AccessPolicy {
        object_id: CALLER,
        secrets: vec!["Set".to_owned()],
        ..AccessPolicy::default()
    });
    assert_eq!(site.kv("PUT", "secrets/s", Some(json!({"value": "v"}))).await.status, StatusCode::OK);
    let denied = site.kv("GET", "secrets/s", None).await;
    assert_eq!(denied.body["error"]["innererror"]["code"], "AccessDenied");
    assert_eq!(site.kv("GET", "keys", None).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn wrong_members_are_refused() {
    let site = Site::new();
    for body in [
        json!({}),
        json!({"value": 1}),
        json!({"value": null}),
        json!({"value": "x".repeat(26_000)}),
        json!({"value": "v", "tags": {"a": 1}}),
        json!({"value": "v", "attributes": []}),
        json!({"value": "v", "attributes": {"enabled": "yes"}}),
        json!({"value": "v", "attributes": {"exp": -1}}),
        json!({"value": "v", "attributes": {"nbf": 10, "exp": 5}}),
        json!({"value": "v", "contentType": 7}),
        Value::String("v".to_owned()),
    ] {
        let reply = site.kv("PUT", "secrets/s", Some(body.clone())).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::BAD_REQUEST, "BadParameter"), "{body}");
    }
    assert_eq!(
        site.kv("PUT", "secrets/a_b", Some(json!({"value": "v"}))).await.status,
        StatusCode::BAD_REQUEST
    );
    site.vaults.remove_vault(VAULT_ID).await.unwrap();
}
