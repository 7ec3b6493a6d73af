use aro_azure_local_directory::{ApplicationSpec, PrincipalKind};
use aro_base::Timestamp;
use aro_pki::jws::{Algorithm, SigningKey};
use aro_pki::pkcs12;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::site::{ARM, FIRST_PARTY, OTHER_TENANT, Site, TENANT};

const CLUSTER: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/c";
const IDENTITY: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/Disk";

async fn first_party(site: &Site) -> String {
    let spec = ApplicationSpec {
        app_id: Some(FIRST_PARTY),
        multi_tenant: true,
        ..ApplicationSpec::new(TENANT, "fpa")
    };
    site.directory.ensure_application(spec).await.unwrap();
    site.directory.issue_token(FIRST_PARTY, TENANT, "https://msi.local").unwrap()
}

fn url(site: &Site, tenant: Uuid) -> String {
    format!("{}&api-version=2024-01-01", site.directory.identity_url(CLUSTER, tenant))
}

fn assertion(site: &Site, credential: &Value) -> String {
    let bundle = STANDARD.decode(credential["client_secret"].as_str().unwrap()).unwrap();
    let bundle = pkcs12::read(&bundle, "").unwrap();
    let now = aro_base::Clock::now(&*site.clock).as_second();
    let claims = json!({
        "aud": format!("https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token"),
        "iss": credential["client_id"], "sub": credential["client_id"], "jti": Uuid::new_v4(),
        "nbf": now, "exp": now + 600,
    });
    let key = SigningKey::from_pem(&bundle.key, Algorithm::Ps256).unwrap();
    key.sign_jwt(&claims, Some(&bundle.certificates[0])).unwrap()
}

#[tokio::test]
async fn the_credential_of_an_identity_works_at_the_token_endpoint_for_exactly_that_identity() {
    let site = Site::new().await;
    let token = first_party(&site).await;
    let identity = site.directory.register_identity(TENANT, IDENTITY, "Disk").await.unwrap();
    let other = site.directory.register_identity(TENANT, "/subscriptions/s/other", "other").await.unwrap();
    let body = json!({"identityIds": [IDENTITY.to_lowercase()], "customClaims": {}});
    let reply = site.identity("POST", &url(&site, TENANT), Some(&token), Some(body)).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    let credential = &reply.body["explicit_identities"][0];
    assert_eq!(credential["client_id"], json!(identity.client_id));
    assert_eq!(credential["object_id"], json!(identity.principal_id));
    assert_eq!(credential["resource_id"], IDENTITY.to_lowercase());
    let days = |name: &str| {
        let moment: Timestamp = credential[name].as_str().unwrap().parse().unwrap();
        (moment.as_second() - aro_base::Clock::now(&*site.clock).as_second()) / 86_400
    };
    assert_eq!((days("renew_after"), days("not_after"), days("cannot_renew_after")), (46, 90, 180));

    let assertion = assertion(&site, credential);
    let scope = "https://management.azure.com/.default";
    let granted = site.assertion_token(identity.client_id, &assertion, scope).await;
    let principal = site.directory.verifier().verify(granted.access_token(), &[ARM]).unwrap();
    assert_eq!(principal.object_id, identity.principal_id);
    assert_eq!(principal.kind, PrincipalKind::ManagedIdentity { resource_id: IDENTITY.to_owned() });
    assert_eq!(
        site.assertion_token(other.client_id, &assertion, scope).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_credential_still_works_after_a_restart_and_not_after_its_identity_is_gone() {
    let site = Site::new().await;
    let token = first_party(&site).await;
    let identity = site.directory.register_identity(TENANT, IDENTITY, "Disk").await.unwrap();
    let body = json!({"identityIds": [IDENTITY]});
    let reply = site.identity("POST", &url(&site, TENANT), Some(&token), Some(body)).await;
    let credential = reply.body["explicit_identities"][0].clone();
    let (old_url, scope) = (url(&site, TENANT), "https://vault.azure.net/.default");
    let site = site.restart().await;
    assert_eq!(url(&site, TENANT), old_url);
    let granted = site.assertion_token(identity.client_id, &assertion(&site, &credential), scope).await;
    assert_eq!(granted.status, StatusCode::OK, "{}", granted.body);
    site.directory.remove_identity(TENANT, IDENTITY).await.unwrap();
    site.directory.remove_identity(TENANT, IDENTITY).await.unwrap();
    let refused = site.assertion_token(identity.client_id, &assertion(&site, &credential), scope).await;
    assert_eq!(refused.code(), 700_016);
    let body = json!({"identityIds": [IDENTITY]});
    let gone = site.identity("POST", &url(&site, TENANT), Some(&token), Some(body)).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert_eq!(
        site.directory.register_identity(TENANT, IDENTITY, "Disk").await.unwrap(),
        identity,
        "derived ids"
    );
}

#[tokio::test]
async fn only_the_first_party_application_with_a_genuine_url_is_served() {
    let site = Site::new().await;
    let token = first_party(&site).await;
    let challenged = site.identity("GET", &url(&site, TENANT), None, None).await;
    assert_eq!(challenged.status, StatusCode::UNAUTHORIZED);
    let challenge = challenged.headers["www-authenticate"].to_str().unwrap();
    assert!(
        challenge
            .starts_with(&format!("Bearer authorization=\"https://login.microsoftonline.com/{TENANT}\"")),
        "{challenge}"
    );

    let app = site.application("other", "s").await;
    let stranger = site.directory.issue_token(app.app_id, TENANT, "https://msi.local").unwrap();
    assert_eq!(
        site.identity("GET", &url(&site, TENANT), Some(&stranger), None).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        site.identity("GET", &url(&site, OTHER_TENANT), Some(&token), None).await.status,
        StatusCode::FORBIDDEN,
        "a token of another tenant"
    );
    let arm = site.directory.issue_token(FIRST_PARTY, TENANT, ARM).unwrap();
    assert_eq!(
        site.identity("GET", &url(&site, TENANT), Some(&arm), None).await.status,
        StatusCode::UNAUTHORIZED
    );
    let forged = url(&site, TENANT).replace(&TENANT.to_string(), &OTHER_TENANT.to_string());
    assert_eq!(site.identity("GET", &forged, Some(&token), None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        site.identity("GET", &url(&site, TENANT), Some(&token), None).await.status,
        StatusCode::NOT_FOUND
    );
    let unversioned = site.directory.identity_url(CLUSTER, TENANT);
    assert_eq!(site.identity("GET", &unversioned, Some(&token), None).await.status, StatusCode::BAD_REQUEST);

    site.directory.register_identity(TENANT, CLUSTER, "c").await.unwrap();
    let own = site.identity("GET", &url(&site, TENANT), Some(&token), None).await;
    assert_eq!(own.status, StatusCode::OK);
    assert!(own.body["client_secret"].is_string());
    let again = site.identity("GET", &url(&site, TENANT), Some(&token), None).await;
    assert_eq!(
        own.body["client_secret"], again.body["client_secret"],
        "one credential until it is to be renewed"
    );
    assert_eq!(site.identity("DELETE", &url(&site, TENANT), Some(&token), None).await.status, StatusCode::OK);
    assert_eq!(
        site.identity("GET", &url(&site, TENANT), Some(&token), None).await.status,
        StatusCode::NOT_FOUND
    );
}
