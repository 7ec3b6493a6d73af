use aro_azure_local_directory::{ApplicationSpec, DirectorySettings, FederatedCredential};
use aro_base::SignedDuration;
use aro_pki::jws::{Algorithm, SigningKey};
use aro_pki::{KeyPem, RsaBits, generate_rsa};
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::site::{ARM, ISSUER, Site, TENANT, settings};

const SCOPE: &str = "https://management.azure.com/.default";

struct Client {
    app_id: Uuid,
    key: KeyPem,
    certificate: Vec<u8>,
}

async fn client(site: &Site) -> Client {
    let key = generate_rsa(RsaBits::B2048).unwrap();
    let pair = rcgen::KeyPair::from_pem(key.expose()).unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.not_after = rcgen::date_time_ymd(2030, 1, 1);
    let certificate = params.self_signed(&pair).unwrap().der().to_vec();
    let spec = ApplicationSpec {
        certificates: vec![certificate.clone()],
        ..ApplicationSpec::new(TENANT, "certified")
    };
    let app = site.directory.ensure_application(spec).await.unwrap();
    Client { app_id: app.app_id, key, certificate }
}

impl Client {
    fn claims(&self, site: &Site) -> Value {
        let now = aro_base::Clock::now(&*site.clock).as_second();
        json!({
            "aud": format!("https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token"),
            "iss": self.app_id, "sub": self.app_id, "jti": Uuid::new_v4(),
            "nbf": now, "iat": now, "exp": now + 600,
        })
    }

    fn sign(&self, algorithm: Algorithm, claims: &Value) -> String {
        SigningKey::from_pem(&self.key, algorithm).unwrap().sign_jwt(claims, Some(&self.certificate)).unwrap()
    }
}

#[tokio::test]
async fn a_registered_certificate_proves_the_client_with_both_algorithms() {
    let site = Site::new().await;
    let client = client(&site).await;
    for algorithm in [Algorithm::Rs256, Algorithm::Ps256] {
        let assertion = client.sign(algorithm, &client.claims(&site));
        let reply = site.assertion_token(client.app_id, &assertion, SCOPE).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
        let payload = aro_pki::jws::Unverified::of(reply.access_token()).unwrap().payload;
        assert_eq!(serde_json::from_slice::<Value>(&payload).unwrap()["appidacr"], "2");
    }
    let mut claims = client.claims(&site);
    claims["aud"] = json!("https://login.local:8443/one.example/oauth2/token");
    let by_host = client.sign(Algorithm::Rs256, &claims);
    assert_eq!(site.assertion_token(client.app_id, &by_host, SCOPE).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_assertion_with_a_wrong_key_audience_time_or_subject_is_refused() {
    let site = Site::new().await;
    let client = client(&site).await;
    let stranger = Client {
        key: generate_rsa(RsaBits::B2048).unwrap(),
        certificate: client.certificate.clone(),
        ..client
    };
    let forged = stranger.sign(Algorithm::Rs256, &stranger.claims(&site));
    assert_eq!(site.assertion_token(stranger.app_id, &forged, SCOPE).await.code(), 700_027);
    let client = self::client(&site).await;
    let with = |name: &str, value: Value| {
        let mut claims = client.claims(&site);
        claims[name] = value;
        client.sign(Algorithm::Rs256, &claims)
    };
    for (assertion, code) in [
        (with("aud", json!("https://login.microsoftonline.com/common/oauth2/v2.0/token")), 700_023),
        (with("aud", json!("https://evil.example/token")), 700_023),
        (with("exp", json!(1)), 700_024),
        (with("exp", Value::Null), 700_024),
        (with("nbf", json!(4_000_000_000_i64)), 700_024),
        (with("sub", json!("other")), 700_021),
        ("a.b.c".to_owned(), 700_027),
    ] {
        let reply = site.assertion_token(client.app_id, &assertion, SCOPE).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::UNAUTHORIZED, code), "{assertion}");
    }
    site.advance(SignedDuration::from_hours(24 * 366 * 4));
    let late = client.sign(Algorithm::Rs256, &client.claims(&site));
    assert_eq!(
        site.assertion_token(client.app_id, &late, SCOPE).await.code(),
        700_027,
        "certificate expired"
    );
}

#[tokio::test]
async fn the_id_of_an_assertion_is_for_one_token_and_optionally_for_one_use() {
    let site = Site::new().await;
    let client = client(&site).await;
    let mut claims = client.claims(&site);
    let assertion = client.sign(Algorithm::Rs256, &claims);
    assert_eq!(site.assertion_token(client.app_id, &assertion, SCOPE).await.status, StatusCode::OK);
    assert_eq!(site.assertion_token(client.app_id, &assertion, SCOPE).await.status, StatusCode::OK);
    claims["exp"] = json!(claims["exp"].as_i64().unwrap() + 1);
    let again = client.sign(Algorithm::Rs256, &claims);
    assert_eq!(site.assertion_token(client.app_id, &again, SCOPE).await.code(), 700_027);

    let strict = Site::with(DirectorySettings { single_use_assertions: true, ..settings() }).await;
    let client = self::client(&strict).await;
    let assertion = client.sign(Algorithm::Rs256, &client.claims(&strict));
    assert_eq!(strict.assertion_token(client.app_id, &assertion, SCOPE).await.status, StatusCode::OK);
    assert_eq!(strict.assertion_token(client.app_id, &assertion, SCOPE).await.code(), 700_027);
}

fn issuer_key(site: &Site) -> SigningKey {
    let key = SigningKey::from_pem(&generate_rsa(RsaBits::B2048).unwrap(), Algorithm::Rs256).unwrap();
    let mut documents = site.documents.0.lock();
    let metadata = json!({"issuer": ISSUER, "jwks_uri": format!("{ISSUER}/keys")});
    documents.insert(format!("{ISSUER}/.well-known/openid-configuration"), metadata.to_string().into_bytes());
    documents.insert(format!("{ISSUER}/keys"), json!({"keys": [key.jwk()]}).to_string().into_bytes());
    drop(documents);
    key
}

fn federated() -> FederatedCredential {
    FederatedCredential {
        name: "sa".to_owned(),
        issuer: ISSUER.to_owned(),
        subject: "system:serviceaccount:ns:sa".to_owned(),
        audiences: vec!["api://AzureADTokenExchange".to_owned()],
    }
}

fn service_account_token(site: &Site, key: &SigningKey, change: impl Fn(&mut Value)) -> String {
    let now = aro_base::Clock::now(&*site.clock).as_second();
    let mut claims = json!({
        "iss": ISSUER, "sub": "system:serviceaccount:ns:sa", "aud": ["api://AzureADTokenExchange"],
        "nbf": now, "exp": now + 3600,
    });
    change(&mut claims);
    key.sign(&claims).unwrap()
}

#[tokio::test]
async fn a_federated_token_stands_for_the_identity_that_names_its_issuer_subject_and_audience() {
    let site = Site::new().await;
    let key = issuer_key(&site);
    let identity = site.directory.register_identity(TENANT, "/subscriptions/s/uami/a", "a").await.unwrap();
    let token = service_account_token(&site, &key, |_| {});
    assert_eq!(site.assertion_token(identity.client_id, &token, SCOPE).await.code(), 70_021);
    site.directory.set_federated_credentials(identity.client_id, vec![federated()]).await.unwrap();
    for _ in 0..2 {
        let reply = site.assertion_token(identity.client_id, &token, SCOPE).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
        assert_eq!(reply.body["expires_in"], 24 * 3600);
        let principal = site.directory.verifier().verify(reply.access_token(), &[ARM]).unwrap();
        assert_eq!(principal.object_id, identity.principal_id);
    }
    for change in [
        |claims: &mut Value| claims["sub"] = json!("system:serviceaccount:ns:other"),
        |claims: &mut Value| claims["aud"] = json!("https://kubernetes.default.svc"),
        |claims: &mut Value| claims["iss"] = json!("https://evil.example"),
    ] {
        let refused = service_account_token(&site, &key, change);
        assert_eq!(site.assertion_token(identity.client_id, &refused, SCOPE).await.code(), 70_021);
    }
    let expired = service_account_token(&site, &key, |claims| claims["exp"] = json!(1));
    assert_eq!(site.assertion_token(identity.client_id, &expired, SCOPE).await.code(), 700_024);
    let forged = SigningKey::from_pem(&generate_rsa(RsaBits::B2048).unwrap(), Algorithm::Rs256).unwrap();
    let forged = service_account_token(&site, &forged, |_| {});
    assert_eq!(site.assertion_token(identity.client_id, &forged, SCOPE).await.code(), 50_013);
}

#[tokio::test]
async fn an_issuer_that_cannot_be_asked_gives_a_refusal() {
    let site = Site::new().await;
    let key = issuer_key(&site);
    site.documents.0.lock().clear();
    let identity = site.directory.register_identity(TENANT, "/subscriptions/s/uami/a", "a").await.unwrap();
    site.directory.set_federated_credentials(identity.client_id, vec![federated()]).await.unwrap();
    let token = service_account_token(&site, &key, |_| {});
    assert_eq!(site.assertion_token(identity.client_id, &token, SCOPE).await.code(), 50_013);
}
