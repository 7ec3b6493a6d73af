//! Tokens: the exchanges of each kind, and what happens when a service refuses one.

use aro_arm::ResourceId;
use aro_base::{Class, Classify as _, Clock as _, Secret, SignedDuration};
use aro_cloud::{CredentialError, ManagedIdentity, Proof, Scope};
use aro_pki::{Authority, Leaf, RsaBits, Subject, Usage, Validity, generate_rsa};
use aro_runtime::SystemClock;
use serde_json::{Value, json};

use crate::model::{Style, World};

fn form(body: &[u8]) -> std::collections::BTreeMap<String, String> {
    url::form_urlencoded::parse(body).into_owned().collect()
}

#[tokio::test]
async fn a_secret_is_exchanged_for_a_token_of_the_audience() {
    let world = World::faultless(Style::Immediate);
    let credential = world.cloud().client_secret("tenant", "client", Secret::new("s3cret".to_owned()));
    let token = credential.token(&Scope::new("https://management.azure.com/")).await.unwrap();
    assert_eq!(token.secret.expose(), "tok-1");
    let model = world.model.lock();
    let seen = &model.seen[0];
    assert_eq!(
        (seen.host.as_str(), seen.path.as_str()),
        ("login.microsoftonline.com", "/tenant/oauth2/v2.0/token")
    );
    let form = form(&seen.body);
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(form["client_secret"], "s3cret");
    assert_eq!(form["scope"], "https://management.azure.com//.default");
}

#[tokio::test]
async fn a_federated_token_is_read_at_each_exchange() {
    let world = World::faultless(Style::Immediate);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    let credential = world.cloud().workload_identity("tenant", "client", file.clone());
    let scope = Scope::new("https://vault.azure.net");
    let missing = credential.token(&scope).await.unwrap_err();
    assert!(matches!(missing, CredentialError::Unusable(_)), "{missing}");
    assert_eq!(missing.class(), Class::Retry);
    for round in ["one", "two"] {
        std::fs::write(&file, format!("{round}\n")).unwrap();
        let token = credential.token(&scope).await.unwrap();
        credential.reject(&scope, &token);
        let model = world.model.lock();
        let form = form(&model.seen.last().unwrap().body);
        assert_eq!(form["client_assertion"], round);
        assert_eq!(form["client_assertion_type"], "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    }
}

#[tokio::test]
async fn a_rotated_certificate_signs_the_next_assertion() {
    let world = World::faultless(Style::Immediate);
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let credential =
        world.cloud().client_certificate_files("tenant", "client", certificate.clone(), key.clone());
    let scope = Scope::new("a");
    let mut headers = Vec::new();
    for _ in 0..2 {
        let validity = Validity::from_now(SystemClock.now(), SignedDuration::from_hours(1));
        let rsa = generate_rsa(RsaBits::B2048).unwrap();
        let subject = Subject { common_name: "fpa".to_owned(), organizations: Vec::new() };
        let leaf = Leaf { subject, dns_names: vec![], addresses: vec![], usage: Usage::Client, validity };
        let issued = Authority::generate("ca", validity).unwrap().issue_for_key(&leaf, &rsa).unwrap();
        std::fs::write(&certificate, issued.certificate).unwrap();
        std::fs::write(&key, rsa.expose()).unwrap();
        let token = credential.token(&scope).await.unwrap();
        credential.reject(&scope, &token);
        let model = world.model.lock();
        let assertion = form(&model.seen.last().unwrap().body)["client_assertion"].clone();
        headers.push(assertion.split('.').next().unwrap().to_owned());
    }
    assert_ne!(headers[0], headers[1]);
}

#[tokio::test]
async fn certificate_files_that_cannot_be_used_are_named() {
    let world = World::faultless(Style::Immediate);
    let proof = Proof::CertificateFiles { certificate: "/none/tls.crt".into(), key: "/none/tls.key".into() };
    let error = world.cloud().application("t", "c", proof).token(&Scope::new("a")).await.unwrap_err();
    assert!(error.to_string().contains("/none/tls.crt"), "{error}");
}

#[tokio::test]
async fn a_managed_identity_is_asked_at_the_configured_host() {
    let world = World::faultless(Style::Immediate);
    let host = "http://127.0.0.1:9".parse().unwrap();
    let credential = world.cloud().managed_identity(host, ManagedIdentity::ClientId("c".to_owned()));
    credential.token(&Scope::new("https://vault.azure.net")).await.unwrap();
    let other = credential.token(&Scope::new("a").in_tenant("t")).await.unwrap_err();
    assert!(matches!(other, CredentialError::OtherTenant));
    let model = world.model.lock();
    let seen = &model.seen[0];
    assert_eq!((seen.host.as_str(), &seen.headers["metadata"]), ("127.0.0.1", &"true".parse().unwrap()));
    assert!(
        seen.query.contains("client_id=c") && seen.query.contains("resource=https%3A%2F%2Fvault.azure.net")
    );
}

#[tokio::test]
async fn refusals_and_outages_of_the_issuer_differ() {
    let world = World::faultless(Style::Immediate);
    let path = "/tenant/oauth2/v2.0/token";
    let unknown = json!({"error": "unauthorized_client", "error_codes": [700_016],
        "error_description": "AADSTS700016: Application was not found.\r\nTrace ID: x"});
    let wrong =
        json!({"error": "invalid_grant", "error_codes": [50_034], "error_description": "AADSTS50034: no"});
    let credential = world.cloud().client_secret("tenant", "client", Secret::new("s".to_owned()));
    let fail = async |status: u16, body: &Value| {
        world.model.lock().fixed.insert(path.to_owned(), vec![(status, vec![], body.clone())]);
        credential.token(&Scope::new("a")).await.unwrap_err()
    };
    let error = fail(400, &unknown).await;
    assert!(error.may_propagate(), "{error:?}");
    assert!(!error.to_string().contains('\n'));
    assert_eq!(fail(400, &wrong).await.class(), Class::Terminal);
    assert_eq!(fail(503, &json!({"error": "temporarily_unavailable"})).await.class(), Class::Retry);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_each_call() {
    let world = World::faultless(Style::Immediate);
    let cloud = world.cloud();
    let arm = cloud.arm(cloud.client_secret("tenant", "client", Secret::new("s".to_owned())));
    let id = ResourceId::of_subscription("s");
    world.model.lock().resources.insert(id.to_lower(), json!({"id": id}));
    arm.get::<Value>(&id, "1").await.unwrap();
    world.model.lock().oldest_token = 2;
    arm.get::<Value>(&id, "1").await.unwrap();
    assert_eq!(world.model.lock().tokens, 2);
    world.model.lock().oldest_token = u32::MAX;
    let error = arm.get::<Value>(&id, "1").await.unwrap_err();
    assert_eq!(error.status().unwrap(), 401);
    assert_eq!(world.model.lock().tokens, 3);
}

#[tokio::test]
async fn no_secret_is_printed() {
    let world = World::faultless(Style::Immediate);
    let cloud = world.cloud();
    let credential = cloud.client_secret("tenant", "client", Secret::new("s3cret".to_owned()));
    let token = credential.token(&Scope::new("a")).await.unwrap();
    let text = format!("{credential:?} {token:?} {:?}", cloud.arm(credential.clone()));
    assert!(!text.contains("s3cret") && !text.contains("tok-"), "{text}");
}

#[test]
fn a_tenant_that_does_not_exist_differs_from_other_refusals() {
    let refused = |code| CredentialError::Refused { codes: vec![code], message: String::new() };
    assert!(refused(90_002).is_unknown_tenant() && !refused(700_016).is_unknown_tenant());
    assert!(!CredentialError::OtherTenant.is_unknown_tenant());
}
