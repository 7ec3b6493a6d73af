use aro_base::SignedDuration;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use serde_json::{Value, json};

use crate::site::Site;

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

async fn create(site: &Site, name: &str, body: Value) -> Value {
    let reply = site.kv("POST", &format!("keys/{name}/create"), Some(body)).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.body["key"].clone()
}

async fn perform(site: &Site, name: &str, operation: &str, body: Value) -> crate::site::Reply {
    site.kv("POST", &format!("keys/{name}/{operation}"), Some(body)).await
}

#[tokio::test]
async fn rsa_keys_encrypt_wrap_and_sign_with_every_algorithm() {
    let site = Site::new();
    let key = create(&site, "rsa", json!({"kty": "RSA", "key_size": 2048})).await;
    assert_eq!((&key["kty"], &key["e"]), (&json!("RSA"), &json!("AQAB")));
    let plain = text(b"a data key of 32 bytes 012345678");
    for algorithm in ["RSA-OAEP", "RSA-OAEP-256", "RSA1_5"] {
        for (there, back) in [("encrypt", "decrypt"), ("wrapkey", "unwrapkey")] {
            let secret = perform(&site, "rsa", there, json!({"alg": algorithm, "value": plain})).await;
            assert_eq!(secret.status, StatusCode::OK, "{algorithm}: {}", secret.text());
            assert!(secret.body["kid"].as_str().unwrap().starts_with("https://kv.vault.azure.net/keys/rsa/"));
            let again =
                perform(&site, "rsa", back, json!({"alg": algorithm, "value": secret.body["value"]})).await;
            assert_eq!(again.body["value"], json!(plain), "{algorithm}");
        }
    }
    for (algorithm, length) in
        [("RS256", 32), ("RS384", 48), ("RS512", 64), ("PS256", 32), ("PS384", 48), ("PS512", 64)]
    {
        check_signature(&site, "rsa", algorithm, length).await;
    }
    let wrong = perform(&site, "rsa", "decrypt", json!({"alg": "RSA-OAEP", "value": text(&[1; 256])})).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    let long = perform(&site, "rsa", "encrypt", json!({"alg": "RSA-OAEP", "value": text(&[1; 300])})).await;
    assert_eq!(long.status, StatusCode::BAD_REQUEST);
}

async fn check_signature(site: &Site, name: &str, algorithm: &str, length: usize) {
    let digest = text(&vec![7; length]);
    let signed = perform(site, name, "sign", json!({"alg": algorithm, "value": digest})).await;
    assert_eq!(signed.status, StatusCode::OK, "{algorithm}: {}", signed.text());
    let valid = json!({"alg": algorithm, "digest": digest, "value": signed.body["value"]});
    assert_eq!(perform(site, name, "verify", valid).await.body["value"], true, "{algorithm}");
    let other = json!({"alg": algorithm, "digest": text(&vec![8; length]), "value": signed.body["value"]});
    assert_eq!(perform(site, name, "verify", other).await.body["value"], false, "{algorithm}");
    let short = perform(site, name, "sign", json!({"alg": algorithm, "value": text(&[7; 5])})).await;
    assert_eq!(short.status, StatusCode::BAD_REQUEST, "{algorithm}");
}

#[tokio::test]
async fn elliptic_keys_sign_with_the_algorithm_of_their_curve() {
    let site = Site::new();
    for (curve, algorithm, length) in [("P-256", "ES256", 32), ("P-384", "ES384", 48), ("P-521", "ES512", 64)]
    {
        let name = curve.to_lowercase();
        let key = create(&site, &name, json!({"kty": "EC", "crv": curve})).await;
        assert_eq!((&key["kty"], &key["crv"]), (&json!("EC"), &json!(curve)));
        check_signature(&site, &name, algorithm, length).await;
        let rsa = perform(&site, &name, "sign", json!({"alg": "RS256", "value": text(&[7; 32])})).await;
        assert_eq!(rsa.status, StatusCode::BAD_REQUEST);
        let encrypt = perform(&site, &name, "encrypt", json!({"alg": "RSA-OAEP", "value": "AA"})).await;
        assert_eq!(encrypt.status, StatusCode::FORBIDDEN, "not one of its operations");
    }
}

#[tokio::test]
async fn keys_are_updated_listed_deleted_and_recovered_with_their_versions() {
    let site = Site::new();
    let first = create(&site, "k", json!({"kty": "EC"})).await;
    let second = create(&site, "k", json!({"kty": "EC"})).await;
    assert_ne!(first["x"], second["x"]);
    let versions = site.kv("GET", "keys/k/versions", None).await;
    assert_eq!(versions.body["value"].as_array().unwrap().len(), 2);
    let version = first["kid"].as_str().unwrap().rsplit('/').next().unwrap();
    let sign = json!({"alg": "ES256", "value": text(&[1; 32])});
    assert_eq!(
        site.kv("POST", &format!("keys/k/{version}/sign"), Some(sign.clone())).await.status,
        StatusCode::OK
    );
    let patch = json!({"key_ops": ["verify"]});
    site.kv("PATCH", &format!("keys/k/{version}"), Some(patch)).await;
    let forbidden = site.kv("POST", &format!("keys/k/{version}/sign"), Some(sign.clone())).await;
    assert_eq!(forbidden.body["error"]["innererror"]["code"], "KeyOperationForbidden");
    let now = aro_base::Clock::now(&*site.clock).as_second();
    site.kv("PATCH", "keys/k", Some(json!({"attributes": {"exp": now + 60}}))).await;
    site.advance(SignedDuration::from_mins(2));
    assert_eq!(perform(&site, "k", "sign", sign).await.status, StatusCode::FORBIDDEN, "expired");

    site.kv("DELETE", "keys/k", None).await;
    assert_eq!(site.kv("GET", "keys/k", None).await.code(), "KeyNotFound");
    let site = site.restart();
    assert_eq!(
        site.kv("GET", "deletedkeys/k", None).await.body["recoveryId"],
        "https://kv.vault.azure.net/deletedkeys/k"
    );
    site.kv("POST", "deletedkeys/k/recover", None).await;
    let found = site.kv("GET", &format!("keys/k/{version}"), None).await;
    assert_eq!(found.body["key"]["x"], first["x"], "the same key");
}

#[tokio::test]
async fn imported_keys_work_and_wrong_ones_are_refused() {
    let site = Site::new();
    // The example key of RFC 7515, appendix A.3.
    let key = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        "d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
    });
    let imported = site.kv("PUT", "keys/ec", Some(json!({"key": key}))).await;
    assert_eq!((imported.status, &imported.body["key"]["x"]), (StatusCode::OK, &key["x"]));
    assert!(!imported.text().contains(key["d"].as_str().unwrap()), "the private part stays inside");
    check_signature(&site, "ec", "ES256", 32).await;
    let mut broken = key.clone();
    broken["x"] = key["y"].clone();
    for body in [
        json!({"key": broken}),
        json!({}),
        json!({"key": {"kty": "RSA", "n": "AQAB"}}),
        json!({"key": {"kty": "oct", "k": "AA"}}),
        json!({"key": 1}),
    ] {
        assert_eq!(
            site.kv("PUT", "keys/x", Some(body.clone())).await.status,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
    for body in [
        json!({}),
        json!({"kty": "RSA", "key_size": 1024}),
        json!({"kty": "EC", "crv": "P-256K"}),
        json!({"kty": "oct"}),
        json!({"kty": "EC", "key_ops": ["fly"]}),
    ] {
        assert_eq!(
            site.kv("POST", "keys/x/create", Some(body.clone())).await.status,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
}
