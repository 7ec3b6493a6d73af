//! Tokens of federated issuers: the keys are in a static website of the same cloud, as they are for a hosted cluster.

use std::collections::BTreeMap;

use aro_arm::ResourceId;
use aro_cloud::Scope;
use aro_cloud::resources::{FederatedCredentialSpec, StorageAccountSpec};
use aro_pki::jws::{Algorithm, SigningKey};
use aro_pki::{RsaBits, generate_rsa};
use aro_runtime::SystemClock;
use serde_json::json;
use tokio::net::TcpListener;
use url::Url;

use crate::world::World;

const ACCOUNT: &str = "arooidcissuer";
const SUBJECT: &str = "system:serviceaccount:ns:operator";

fn issuer() -> String {
    format!("https://{ACCOUNT}.web.core.windows.net/cluster")
}

fn key() -> SigningKey {
    SigningKey::from_pem(&generate_rsa(RsaBits::B2048).unwrap(), Algorithm::Rs256).unwrap()
}

fn token(key: &SigningKey, issuer: &str) -> String {
    let now = SystemClock::shared().now().as_second();
    let claims = json!({"iss": issuer, "sub": SUBJECT, "aud": ["api://AzureADTokenExchange"],
        "iat": now, "nbf": now, "exp": now + 600});
    key.sign(&claims).unwrap()
}

/// An identity that trusts an issuer; returns its client id.
async fn identity(world: &World, group: &ResourceId, issuer: &str) -> String {
    let id = format!("{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/operator");
    let id = ResourceId::parse(&id).unwrap();
    let identity = world.arm.ensure_identity(&id, "westus3", &BTreeMap::new()).await.unwrap();
    let spec = FederatedCredentialSpec::service_account(issuer, "ns", "operator");
    world.arm.ensure_federated_credential(&id, "cluster", &spec).await.unwrap();
    identity.properties.client_id.to_string()
}

/// Publishes the documents of an issuer in a static website.
async fn publish(world: &World, group: &ResourceId, key: &SigningKey) {
    let id = format!("{group}/providers/Microsoft.Storage/storageAccounts/{ACCOUNT}");
    let id = ResourceId::parse(&id).unwrap();
    let spec = StorageAccountSpec {
        location: "westus3".to_owned(),
        sku: "Standard_LRS".to_owned(),
        shared_keys: false,
        tags: BTreeMap::new(),
    };
    world.arm.ensure_storage_account(&id, &spec).await.unwrap();
    let principal = world.principal().await;
    world.assign(group, principal, "Storage Blob Data Contributor").await;
    let url = Url::parse(&format!("https://{ACCOUNT}.blob.core.windows.net")).unwrap();
    let blobs = world.cloud.blobs(world.credential.clone(), url);
    blobs.ensure_container("$web").await.unwrap();
    blobs.ensure_static_website().await.unwrap();
    let keys = format!("{}/openid/v1/jwks", issuer());
    let metadata = json!({"issuer": issuer(), "jwks_uri": keys, "response_types_supported": ["id_token"]});
    for (name, document) in [
        ("cluster/.well-known/openid-configuration", metadata),
        ("cluster/openid/v1/jwks", json!({"keys": [key.jwk()]})),
    ] {
        let content = document.to_string().into_bytes().into();
        blobs.put("$web", name, "application/json", content).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_a_published_issuer_becomes_one_of_exactly_that_identity() {
    let world = World::start().await;
    let group = world.group("g").await;
    let (key, other) = (key(), key());
    publish(&world, &group, &key).await;
    let client = identity(&world, &group, &issuer()).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    let tenant = world.account.tenant_id.to_string();
    let scope = Scope::new("https://management.azure.com/");

    std::fs::write(&file, token(&key, &issuer())).unwrap();
    let credential = world.cloud.workload_identity(&tenant, &client, file.clone());
    let issued = credential.token(&scope).await.unwrap();
    let payload = aro_pki::jws::Unverified::of(issued.secret.expose()).unwrap().payload;
    let claims: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(claims["appid"], client);
    assert!(claims["xms_mirid"].as_str().unwrap().ends_with("/userassignedidentities/operator"), "{claims}");

    std::fs::write(&file, token(&other, &issuer())).unwrap();
    let forged = world.cloud.workload_identity(&tenant, &client, file.clone());
    forged.token(&scope).await.unwrap_err();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_on_this_machine_is_not_dialled() {
    let world = World::start().await;
    let group = world.group("g").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tenant = world.account.tenant_id.to_string();
    let dir = tempfile::tempdir().unwrap();
    let key = key();
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), "issuer.example.com".to_owned()] {
        let issuer = format!("https://{host}");
        let client = identity(&world, &group, &issuer).await;
        let file = dir.path().join("token");
        std::fs::write(&file, token(&key, &issuer)).unwrap();
        let credential = world.cloud.workload_identity(&tenant, &client, file);
        credential.token(&Scope::new("https://management.azure.com/")).await.unwrap_err();
    }
    let dialled = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
    assert!(dialled.is_err(), "the issuer's listener was dialled");
    world.stop().await;
}
