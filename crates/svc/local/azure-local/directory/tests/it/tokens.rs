use aro_azure_local_directory::{ApplicationSpec, PrincipalKind, TokenError};
use aro_base::{Secret, SignedDuration};
use aro_pki::jws::{KeySet, Unverified};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::site::{ARM, OTHER_TENANT, Site, TENANT, settings};

const SCOPE: &str = "https://management.core.windows.net//.default";

#[tokio::test]
async fn a_secret_gives_a_token_with_entra_claims_that_the_published_keys_verify() {
    let site = Site::new().await;
    let app = site.application("cli", "hunter2").await;
    let reply = site.secret_token(&app.app_id.to_string(), "hunter2", SCOPE).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    assert_eq!(reply.body["token_type"], "Bearer");
    let seconds = reply.body["expires_in"].as_i64().unwrap();
    assert!((3600..=5400).contains(&seconds), "{seconds}");
    assert_eq!(reply.headers["cache-control"], "no-store, no-cache");

    let keys = site.get(&format!("/{TENANT}/discovery/v2.0/keys")).await;
    let keys = KeySet::from_json(keys.body.to_string().as_bytes()).unwrap();
    let claims: Value = serde_json::from_slice(&keys.verify(reply.access_token()).unwrap()).unwrap();
    assert_eq!(claims["aud"], "https://management.core.windows.net/");
    assert_eq!(claims["iss"], format!("https://sts.windows.net/{TENANT}/"));
    assert_eq!(claims["appid"], json!(app.app_id));
    assert_eq!(claims["appidacr"], "1");
    assert_eq!(claims["oid"], json!(app.principal_id));
    assert_eq!(claims["sub"], claims["oid"]);
    assert_eq!(
        (&claims["tid"], &claims["ver"], &claims["idtyp"]),
        (&json!(TENANT), &json!("1.0"), &json!("app"))
    );
    assert!(claims.get("xms_mirid").is_none());

    let verifier = site.directory.verifier();
    let principal = verifier.verify(reply.access_token(), &["https://management.core.windows.net"]).unwrap();
    assert_eq!(
        (principal.tenant, principal.app_id, principal.object_id),
        (TENANT, app.app_id, app.principal_id)
    );
    assert_eq!((principal.name.as_str(), principal.kind), ("cli", PrincipalKind::Application));
}

#[tokio::test]
async fn the_verifier_refuses_other_audiences_expired_and_foreign_tokens() {
    let (site, other) = (Site::new().await, Site::new().await);
    let app = site.application("cli", "s").await;
    let token = site.directory.issue_token(app.app_id, TENANT, ARM).unwrap();
    let verifier = site.directory.verifier();
    assert!(verifier.verify(&token, &["https://x", "https://MANAGEMENT.azure.com/"]).is_ok());
    assert_eq!(verifier.verify(&token, &["https://vault.azure.net"]), Err(TokenError::Audience));
    assert!(matches!(other.directory.verifier().verify(&token, &[ARM]), Err(TokenError::Signature(_))));
    assert!(verifier.verify("", &[ARM]).is_err());
    site.advance(SignedDuration::from_hours(2));
    assert_eq!(verifier.verify(&token, &[ARM]), Err(TokenError::Time), "also when it was verified before");
}

#[tokio::test]
async fn refusals_carry_entra_codes_and_its_envelope() {
    let site = Site::new().await;
    let app = site.application("cli", "hunter2").await;
    let id = app.app_id.to_string();
    let unknown = Uuid::new_v4().to_string();
    let tenant = TENANT.to_string();
    let good = [
        ("grant_type", "client_credentials"),
        ("client_id", &id),
        ("client_secret", "hunter2"),
        ("scope", SCOPE),
    ];
    let with = |name: &str, value: Option<&'static str>| -> Vec<(&str, &str)> {
        let kept = good.iter().copied().filter(|(key, _)| *key != name);
        let mut form: Vec<(&str, &str)> = kept.collect();
        if let Some(value) = value {
            form.push((
                ["grant_type", "client_id", "client_secret", "scope"]
                    .into_iter()
                    .find(|key| *key == name)
                    .unwrap(),
                value,
            ));
        }
        form
    };
    for (form, status, code) in [
        (with("client_secret", Some("wrong")), 401, 7_000_215),
        (with("client_secret", None), 401, 7_000_218),
        (with("client_id", Some("not-a-guid")), 400, 700_016),
        (with("client_id", None), 400, 900_144),
        (with("grant_type", None), 400, 900_144),
        (with("grant_type", Some("password")), 400, 70_003),
        (with("scope", None), 400, 900_144),
        (with("scope", Some("https://vault.azure.net/read")), 400, 1_002_012),
        (with("scope", Some("https://nowhere.example/.default")), 400, 500_011),
    ] {
        let reply = site.token(&tenant, &form).await;
        assert_eq!((reply.status.as_u16(), reply.code()), (status, code), "{form:?}");
        let text = reply.body["error_description"].as_str().unwrap();
        assert!(text.starts_with(&format!("AADSTS{code}: ")), "{text}");
        for member in ["error", "timestamp", "trace_id", "correlation_id", "error_uri"] {
            assert!(reply.body[member].is_string(), "{member}");
        }
    }
    assert_eq!(site.secret_token(&unknown, "x", SCOPE).await.code(), 700_016);
    assert_eq!(site.token("nowhere.example", &good).await.code(), 90_002);
    assert_eq!(site.token(&OTHER_TENANT.to_string(), &good).await.code(), 700_016, "no principal there");
    let get = site.get(&format!("/{TENANT}/oauth2/v2.0/token")).await;
    assert_eq!(get.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_tenant_is_named_by_its_domain_and_the_first_endpoint_takes_a_resource() {
    let site = Site::new().await;
    let app = site.application("cli", "s").await;
    let id = app.app_id.to_string();
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", &id),
        ("client_secret", "s"),
        ("resource", "https://vault.azure.net"),
    ];
    let reply = site.form("/ONE.example//oauth2/token", &form).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    assert!(reply.body["expires_in"].is_string());
    assert_eq!(reply.body["resource"], "https://vault.azure.net");
    assert!(site.directory.verifier().verify(reply.access_token(), &["https://vault.azure.net"]).is_ok());
}

#[tokio::test]
async fn basic_authentication_carries_encoded_credentials() {
    let site = Site::new().await;
    let app = site.application("cli", "p:+ s").await;
    let basic = STANDARD.encode(format!("{}:p%3A%2B+s", app.app_id));
    let request = Request::post(format!("/{TENANT}/oauth2/v2.0/token"))
        .header("authorization", format!("Basic {basic}"))
        .body(Body::from("grant_type=client_credentials&scope=https%3A%2F%2Fstorage.azure.com%2F.default"))
        .unwrap();
    let reply = site.send(aro_azure_local_directory::login_router(site.endpoints.clone()), request).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
}

#[tokio::test]
async fn a_multi_tenant_application_has_a_principal_in_every_tenant() {
    let site = Site::new().await;
    let spec = ApplicationSpec {
        multi_tenant: true,
        secrets: vec![Secret::new("s".to_owned())],
        ..ApplicationSpec::new(TENANT, "first party")
    };
    let app = site.directory.ensure_application(spec).await.unwrap();
    let id = app.app_id.to_string();
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", id.as_str()),
        ("client_secret", "s"),
        ("scope", SCOPE),
    ];
    let reply = site.token(&OTHER_TENANT.to_string(), &form).await;
    let principal = site
        .directory
        .verifier()
        .verify(reply.access_token(), &["https://management.core.windows.net/"])
        .unwrap();
    assert_eq!(principal.tenant, OTHER_TENANT);
    assert_ne!(principal.object_id, app.principal_id);
    assert_eq!(site.directory.find_principal(OTHER_TENANT, principal.object_id).unwrap().app_id, app.app_id);
}

#[tokio::test]
async fn an_application_can_be_a_resource_with_tokens_of_its_version() {
    let site = Site::new().await;
    let spec = ApplicationSpec {
        identifier_uris: vec!["api://backend".to_owned()],
        token_version: 2,
        ..ApplicationSpec::new(TENANT, "backend")
    };
    let backend = site.directory.ensure_application(spec).await.unwrap();
    let app = site.application("cli", "s").await;
    for scope in ["api://backend/.default".to_owned(), format!("{}/.default", backend.app_id)] {
        let reply = site.secret_token(&app.app_id.to_string(), "s", &scope).await;
        let claims: Value =
            serde_json::from_slice(&Unverified::of(reply.access_token()).unwrap().payload).unwrap();
        assert_eq!((&claims["ver"], &claims["azp"]), (&json!("2.0"), &json!(app.app_id)));
        assert_eq!(claims["iss"], format!("https://login.microsoftonline.com/{TENANT}/v2.0"));
    }
    let token = site.directory.issue_token(app.app_id, TENANT, "api://backend").unwrap();
    assert!(site.directory.verifier().verify(&token, &["api://backend"]).is_ok());
}

#[tokio::test]
async fn a_client_that_fails_too_often_waits_for_a_minute() {
    let site =
        Site::with(aro_azure_local_directory::DirectorySettings { failures_per_minute: 3, ..settings() })
            .await;
    let app = site.application("cli", "right").await;
    let id = app.app_id.to_string();
    for _ in 0..3 {
        assert_eq!(site.secret_token(&id, "wrong", SCOPE).await.code(), 7_000_215);
    }
    let reply = site.secret_token(&id, "right", SCOPE).await;
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(reply.headers["retry-after"], "60");
    site.advance(SignedDuration::from_mins(1));
    assert_eq!(site.secret_token(&id, "right", SCOPE).await.status, StatusCode::OK);
}

#[tokio::test]
async fn metadata_names_the_host_that_the_client_used() {
    let site = Site::new().await;
    for (path, issuer) in [
        (
            format!("/{TENANT}/v2.0/.well-known/openid-configuration"),
            format!("https://login.microsoftonline.com/{TENANT}/v2.0"),
        ),
        (format!("/{TENANT}/.well-known/openid-configuration"), format!("https://sts.windows.net/{TENANT}/")),
        (
            "/common/v2.0/.well-known/openid-configuration".to_owned(),
            "https://login.microsoftonline.com/{tenantid}/v2.0".to_owned(),
        ),
    ] {
        let reply = site.get(&path).await;
        assert_eq!(
            (reply.status, reply.body["issuer"].as_str()),
            (StatusCode::OK, Some(issuer.as_str())),
            "{path}"
        );
        assert!(
            reply.body["token_endpoint"].as_str().unwrap().starts_with("https://login.local:8443/"),
            "{path}"
        );
        let keys = reply.body["jwks_uri"].as_str().unwrap().strip_prefix("https://login.local:8443").unwrap();
        assert_eq!(site.get(keys).await.body["keys"].as_array().unwrap().len(), 1, "{path}");
    }
    let unknown = site.get("/nowhere.example/v2.0/.well-known/openid-configuration").await;
    assert_eq!((unknown.status.as_u16(), unknown.code()), (400, 90_002));

    let cloud = site.get("/metadata/endpoints?api-version=2022-09-01").await.body;
    assert_eq!(cloud["resourceManager"], "https://login.local:8443");
    assert_eq!(cloud["suffixes"]["keyVaultDns"], "vault.azure.net");
    assert_eq!(site.get("/metadata/endpoints?api-version=2019-05-01").await.body[0], cloud);
    assert_eq!(site.get("/metadata/endpoints").await.status, StatusCode::BAD_REQUEST);
    let instance = site
        .get("/common/discovery/instance?api-version=1.1&authorization_endpoint=https://login.microsoftonline.com/common/oauth2/v2.0/authorize")
        .await;
    assert_eq!(
        instance.body["tenant_discovery_endpoint"],
        "https://login.local:8443/common/v2.0/.well-known/openid-configuration"
    );
}
