use aro_azure_local_directory::{ApplicationSpec, TokenError};
use aro_base::{Secret, SignedDuration};

use crate::site::{ARM, Site, TENANT};

#[tokio::test]
async fn tokens_and_keys_survive_a_restart() {
    let site = Site::new().await;
    let app = site.application("cli", "s").await;
    let token = site.directory.issue_token(app.app_id, TENANT, ARM).unwrap();
    let keys = site.directory.public_keys();
    let site = site.restart().await;
    assert_eq!(site.directory.public_keys(), keys);
    assert!(site.directory.verifier().verify(&token, &[ARM]).is_ok());
    assert_eq!(site.directory.find_tenant("ONE.example").unwrap().id, TENANT);
    let again = site.application("cli", "s").await;
    assert_eq!(again, app, "the same spec changes nothing");
}

#[tokio::test]
async fn a_retired_key_stays_published_until_its_tokens_have_expired() {
    let site = Site::new().await;
    let identity = site.directory.register_identity(TENANT, "/subscriptions/s/uami/a", "a").await.unwrap();
    let old = site.directory.issue_token(identity.client_id, TENANT, ARM).unwrap();
    site.directory.rotate_now().await.unwrap();
    assert_eq!(site.directory.public_keys().len(), 2);
    let new = site.directory.issue_token(identity.client_id, TENANT, ARM).unwrap();
    let verifier = site.directory.verifier();
    assert!(verifier.verify(&old, &[ARM]).is_ok() && verifier.verify(&new, &[ARM]).is_ok());

    site.advance(SignedDuration::from_hours(23));
    site.directory.maintain().await.unwrap();
    assert_eq!(site.directory.public_keys().len(), 2);
    assert!(site.directory.verifier().verify(&old, &[ARM]).is_ok());
    site.advance(SignedDuration::from_hours(4));
    site.directory.maintain().await.unwrap();
    assert_eq!(site.directory.public_keys().len(), 1);
    assert!(matches!(site.directory.verifier().verify(&old, &[ARM]), Err(TokenError::Signature(_))));

    site.advance(SignedDuration::from_hours(24 * 30));
    let before = site.directory.public_keys();
    site.directory.maintain().await.unwrap();
    let after = site.directory.public_keys();
    assert_eq!((before.len(), after.len()), (1, 2), "rotated by age");
    let site = site.restart().await;
    assert_eq!(site.directory.public_keys().len(), 2);
}

#[tokio::test]
async fn a_changed_spec_changes_the_application_and_keeps_earlier_credentials() {
    let site = Site::new().await;
    let app = site.application("cli", "first").await;
    let spec = ApplicationSpec {
        secrets: vec![Secret::new("second".to_owned())],
        identifier_uris: vec!["api://cli".to_owned()],
        ..ApplicationSpec::new(TENANT, "cli")
    };
    let changed = site.directory.ensure_application(spec).await.unwrap();
    assert_eq!((changed.app_id, changed.identifier_uris.len()), (app.app_id, 1));
    for secret in ["first", "second"] {
        let reply =
            site.secret_token(&app.app_id.to_string(), secret, "https://vault.azure.net/.default").await;
        assert_eq!(reply.status, 200, "{secret}: {}", reply.body);
    }
    let unknown =
        site.directory.ensure_application(ApplicationSpec::new(uuid::Uuid::from_u128(9), "x")).await;
    assert!(unknown.is_err());
}
