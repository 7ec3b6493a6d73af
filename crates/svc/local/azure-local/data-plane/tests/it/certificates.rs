use aro_pki::pkcs12;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value, json};

use crate::site::Site;

fn policy(content_type: &str, kty: &str) -> Value {
    json!({
        "key_props": {"exportable": true, "kty": kty, "reuse_key": false},
        "secret_props": {"contentType": content_type},
        "x509_props": {"subject": "CN=api.example, O=Example", "sans": {"dns_names": ["api.example", "*.api.example"]}, "validity_months": 6},
        "issuer": {"name": "Self"},
    })
}

async fn create(site: &Site, name: &str, policy: Value) {
    let body = json!({"policy": policy, "tags": {"t": "1"}});
    let reply = site.kv("POST", &format!("certificates/{name}/create"), Some(body)).await;
    assert_eq!(
        (reply.status, &reply.body["status"]),
        (StatusCode::ACCEPTED, &json!("completed")),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn a_certificate_comes_with_a_key_and_a_secret_in_both_formats() {
    let site = Site::new();
    for (name, content_type, kty) in
        [("pfx", "application/x-pkcs12", "RSA"), ("pem", "application/x-pem-file", "EC")]
    {
        create(&site, name, policy(content_type, kty)).await;
        let pending = site.kv("GET", &format!("certificates/{name}/pending"), None).await;
        assert_eq!(pending.body["target"], format!("https://kv.vault.azure.net/certificates/{name}"));
        let certificate = site.kv("GET", &format!("certificates/{name}"), None).await.body;
        let der = STANDARD.decode(certificate["cer"].as_str().unwrap()).unwrap();
        let bearer = aro_pki::Bearer::of_certificate(&der).unwrap();
        assert_eq!(bearer.subject.common_name, "api.example");
        assert_eq!(certificate["policy"]["x509_props"]["validity_months"], 6);
        assert_eq!(certificate["attributes"]["exp"], bearer.until.as_second() - 1);
        let version = certificate["id"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        for id in [&certificate["kid"], &certificate["sid"]] {
            assert!(id.as_str().unwrap().ends_with(&format!("/{name}/{version}")));
        }
        let secret = site.kv("GET", &format!("secrets/{name}"), None).await.body;
        assert_eq!((&secret["contentType"], &secret["managed"]), (&json!(content_type), &json!(true)));
        let value = secret["value"].as_str().unwrap();
        if name == "pfx" {
            let bundle = pkcs12::read(&STANDARD.decode(value).unwrap(), "").unwrap();
            assert_eq!(bundle.certificates, [der]);
        } else {
            assert!(
                value.starts_with("-----BEGIN PRIVATE KEY-----")
                    && value.contains("-----BEGIN CERTIFICATE-----")
            );
        }
        let key = site.kv("GET", &format!("keys/{name}"), None).await.body;
        assert_eq!(key["key"]["kty"], kty);
    }
    let issuers = site.kv("GET", "certificates/issuers", None).await;
    assert_eq!(issuers.body["value"], json!([]));
}

#[tokio::test]
async fn a_certificate_is_deleted_recovered_and_purged_together_with_its_key_and_secret() {
    let site = Site::new();
    create(&site, "c", policy("application/x-pem-file", "EC")).await;
    for path in ["secrets/c", "keys/c"] {
        assert_eq!(site.kv("DELETE", path, None).await.status, StatusCode::FORBIDDEN, "managed");
    }
    assert_eq!(site.kv("PUT", "secrets/c", Some(json!({"value": "v"}))).await.status, StatusCode::FORBIDDEN);
    assert_eq!(site.kv("DELETE", "certificates/c", None).await.status, StatusCode::OK);
    for path in ["secrets/c", "keys/c", "certificates/c"] {
        assert_eq!(site.kv("GET", path, None).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let site = site.restart();
    assert_eq!(site.kv("POST", "deletedcertificates/c/recover", None).await.status, StatusCode::OK);
    assert_eq!(site.kv("GET", "secrets/c", None).await.status, StatusCode::OK);
    site.kv("DELETE", "certificates/c", None).await;
    assert_eq!(site.kv("DELETE", "deletedcertificates/c", None).await.status, StatusCode::NO_CONTENT);
    assert_eq!(site.kv("PUT", "secrets/c", Some(json!({"value": "free"}))).await.status, StatusCode::OK);
    let taken = site
        .kv("POST", "certificates/c/create", Some(json!({"policy": policy("application/x-pem-file", "EC")})))
        .await;
    assert_eq!(taken.status, StatusCode::CONFLICT, "the name of a secret of its own");
}

#[tokio::test]
async fn the_next_version_follows_the_policy_and_can_keep_the_key() {
    let site = Site::new();
    create(&site, "c", policy("application/x-pem-file", "EC")).await;
    let key = |site: Site| async move {
        let key = site.kv("GET", "keys/c", None).await.body["key"]["x"].clone();
        (site, key)
    };
    let (site, first) = key(site).await;
    let patched =
        site.kv("PATCH", "certificates/c/policy", Some(json!({"key_props": {"reuse_key": true}}))).await;
    assert_eq!(patched.body["key_props"]["reuse_key"], true, "{}", patched.text());
    let again = site.kv("POST", "certificates/c/create", Some(json!({}))).await;
    assert_eq!(again.status, StatusCode::ACCEPTED, "{}", again.text());
    let (site, second) = key(site).await;
    assert_eq!(first, second);
    let versions = site.kv("GET", "certificates/c/versions", None).await;
    assert_eq!(versions.body["value"].as_array().unwrap().len(), 2);
    assert_eq!(site.kv("DELETE", "certificates/c/pending", None).await.status, StatusCode::OK);
    assert_eq!(site.kv("GET", "certificates/c/pending", None).await.code(), "PendingCertificateNotFound");
}

#[tokio::test]
async fn pfx_and_pem_are_imported_and_malformed_ones_refused() {
    let site = Site::new();
    create(&site, "pfx", policy("application/x-pkcs12", "RSA")).await;
    create(&site, "pem", policy("application/x-pem-file", "EC")).await;
    for name in ["pfx", "pem"] {
        let value = site.kv("GET", &format!("secrets/{name}"), None).await.body["value"].clone();
        let imported =
            site.kv("POST", &format!("certificates/{name}-copy/import"), Some(json!({"value": value}))).await;
        assert_eq!(imported.status, StatusCode::OK, "{}", imported.text());
        let original = site.kv("GET", &format!("certificates/{name}"), None).await.body;
        assert_eq!(imported.body["x5t"], original["x5t"]);
    }
    let value = site.kv("GET", "secrets/pfx", None).await.body["value"].clone();
    let bundle = pkcs12::read(&STANDARD.decode(value.as_str().unwrap()).unwrap(), "").unwrap();
    let locked = STANDARD.encode(pkcs12::write(&bundle, "pass").unwrap());
    let wrong = site.kv("POST", "certificates/x/import", Some(json!({"value": locked, "pwd": "no"}))).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    let right = site.kv("POST", "certificates/x/import", Some(json!({"value": locked, "pwd": "pass"}))).await;
    assert_eq!(right.status, StatusCode::OK, "{}", right.text());
    for body in [
        json!({}),
        json!({"value": "AAAA"}),
        json!({"value": "-----BEGIN x"}),
        json!({"value": 1}),
        json!({"value": "AAAA", "pwd": 1}),
    ] {
        assert_eq!(
            site.kv("POST", "certificates/y/import", Some(body.clone())).await.status,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
    let mut other_issuer = policy("application/x-pem-file", "EC");
    other_issuer["issuer"]["name"] = json!("OneCertV2-PublicCA");
    for wrong in [json!(1), json!({}), other_issuer] {
        let body = json!({"policy": wrong});
        assert_eq!(
            site.kv("POST", "certificates/y/create", Some(body.clone())).await.status,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
}
