//! Upgrade policies, inflight checks and break-glass credentials.

use aro_base::SignedDuration;
use aro_ocm::{
    BreakGlassCredentialStatus, CredentialId, InflightCheck, InflightCheckState, Sensitive,
    UpgradePolicyStateValue,
};
use aro_store::PartitionKey;
use serde_json::json;

use super::fixture::{ARO, Fixture, V1, cluster_id};
use crate::records::{CheckRecord, Record as _, credential_key, policy_key};

#[tokio::test]
async fn the_newest_upgrade_policy_comes_first_when_asked_for_on_both_roots() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let policies = format!("{href}/control_plane_upgrade_policies");
    for version in ["4.20.10", "4.20.11", "4.21.0"] {
        let body = json!({"kind": "ControlPlaneUpgradePolicy", "version": version});
        let policy = fixture.post(&policies, body).await.expect(201);
        assert_eq!((&policy["version"], &policy["state"]["value"]), (&json!(version), &json!("pending")));
        fixture.clock.advance(SignedDuration::from_secs(1));
    }
    for path in [policies.clone(), format!("{}/control_plane/upgrade_policies", href.replace(ARO, V1))] {
        let list =
            fixture.list(&path, &[("order", "creation_timestamp desc"), ("page", "1")]).await.expect(200);
        assert_eq!((&list["total"], &list["items"][0]["version"]), (&json!(3), &json!("4.21.0")));
        let first = list["items"][0]["href"].as_str().unwrap().to_owned();
        assert!(first.starts_with(&path), "{first}");
        assert_eq!(fixture.get(&first).await.expect(200)["version"], "4.21.0");
    }
}

#[tokio::test]
async fn an_upgrade_to_a_version_that_is_none_is_refused() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let policies = format!("{href}/control_plane_upgrade_policies");
    for version in ["", "4.20.7", "4.19.42", "4.20.1", "4.22.0", "x"] {
        let refused = fixture.post(&policies, json!({"version": version})).await;
        assert_eq!(refused.fields(400), ["version"], "{version}");
    }
    fixture.post(&policies, json!({"version": "4.20.8"})).await.expect(201);
}

#[tokio::test]
async fn finished_policies_stay_listed_and_a_started_one_is_not_deleted() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let policies = format!("{href}/control_plane_upgrade_policies");
    let policy = fixture.post(&policies, json!({"version": "4.20.10"})).await.expect(201);
    let at = policy["href"].as_str().unwrap();
    let changed = fixture.patch(at, json!({"version": "4.20.11"})).await.expect(200);
    assert_eq!(changed["version"], "4.20.11");
    let key = policy_key(&cluster_id(&href), policy["id"].as_str().unwrap());
    for (state, status) in
        [(UpgradePolicyStateValue::Started, 400), (UpgradePolicyStateValue::Completed, 204)]
    {
        let set = fixture.shared.records.policies.update(&key, |record| {
            record.policy.state.get_or_insert_default().value = Some(state);
            true
        });
        set.await.unwrap();
        assert_eq!(fixture.get(&policies).await.expect(200)["total"], 1);
        assert_eq!(fixture.patch(at, json!({"version": "4.20.12"})).await.status.as_u16(), 400);
        assert_eq!(fixture.delete(at).await.status.as_u16(), status);
    }
}

#[tokio::test]
async fn failed_checks_show_their_error() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    let empty = fixture.get(&format!("{href}/inflight_checks")).await.expect(200);
    assert_eq!(empty["items"], json!([]));
    let record = CheckRecord {
        cluster_id: cluster_id(&href),
        id: "c1".to_owned(),
        check: InflightCheck {
            name: Some("cluster-managed-identities-inflight".to_owned()),
            state: Some(InflightCheckState::Failed),
            details: Some(json!({"error": "identity 'x' not found"})),
            ..InflightCheck::default()
        },
    };
    let checks = &fixture.shared.records.checks;
    let op = checks.create(record.names(), &record).unwrap();
    let partition = PartitionKey::new(record.cluster_id.as_str());
    checks.store().write(checks.batch(&partition).with(op)).await.unwrap();
    let failed =
        fixture.list(&format!("{href}/inflight_checks"), &[("search", "state = 'failed'")]).await.expect(200);
    assert_eq!(failed["items"][0]["details"]["error"], "identity 'x' not found");
    assert_eq!(fixture.get(&format!("{href}/inflight_checks/c1")).await.expect(200)["kind"], "InflightCheck");
}

#[tokio::test]
async fn credentials_are_requested_read_and_revoked_and_never_listed_with_their_secret() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    let credentials = format!("{}/break_glass_credentials", href.replace(ARO, V1));
    fixture.post(&credentials, json!({"kind": "BreakGlassCredential"})).await.expect(400);
    fixture.set_state(&href, aro_ocm::ClusterState::Ready).await;
    fixture.post(&credentials.replace(V1, ARO), json!({})).await.expect(404);
    let created = fixture.post(&credentials, json!({"kind": "BreakGlassCredential"})).await.expect(201);
    assert_eq!(created["status"], "created");
    assert_eq!(created["expiration_timestamp"], "2026-08-02T10:00:01.000000Z");
    let at = created["href"].as_str().unwrap().to_owned();
    assert!(at.starts_with("/api/clusters_mgmt/v1/clusters/"));
    let id = CredentialId::parse(created["id"].as_str().unwrap()).unwrap();
    let key = credential_key(&cluster_id(&href), &id);
    let issued = fixture.shared.records.credentials.update(&key, |record| {
        record.credential.status = Some(BreakGlassCredentialStatus::Issued);
        record.credential.kubeconfig = Some(Sensitive::new("secret kubeconfig"));
        true
    });
    issued.await.unwrap();
    assert_eq!(fixture.get(&at).await.expect(200)["kubeconfig"], "secret kubeconfig");
    assert!(!fixture.get(&credentials).await.text.contains("secret kubeconfig"));
    assert_eq!(fixture.delete(&credentials).await.status.as_u16(), 204);
    let revoked = fixture.get(&at).await.expect(200);
    assert_eq!((&revoked["status"], revoked.get("kubeconfig")), (&json!("awaiting_revocation"), None));
}
