//! Traffic of whole lives in the four preview versions, judged by the published OpenAPI documents.

use anyhow::{Context, Result, ensure};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{Exchange, Names, TestClient, cluster_body, external_auth_body, node_pool_body};
use aro_harness::Stack;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::clients;
use crate::credentials::{ADMIN, certificate_request};
use crate::support::at;

/// One life, touching every documented path with success and with failure.
async fn live(stack: &Stack, version: ApiVersion) -> Result<Vec<Exchange>> {
    let names = Names::default();
    let base = stack.base_url();
    TestClient::new(&base).register(&names.subscription).await?;
    let (arm, backend) = (TestClient::new(&base), stack.backend()?);
    let cluster = names.cluster("judged");
    let (pool, auth) = (names.node_pool("judged", "np-1"), names.external_auth("judged", "auth-1"));
    let below = |what: &str| {
        at(
            &format!("/subscriptions/{}/providers/Microsoft.RedHatOpenShift/{what}", names.subscription),
            version,
        )
    };
    arm.get(&at("/providers/Microsoft.RedHatOpenShift/operations", version)).await?.expect(200)?;
    for what in [
        "hcpOpenShiftVersions",
        "hcpOpenShiftVersions/4.22.11",
        "hcpOperatorIdentityRoleSets",
        "hcpOperatorIdentityRoleSets/4.22",
    ] {
        arm.get(&below(&format!("locations/uksouth/{what}"))).await?.expect(200)?;
    }
    arm.put(&at(&cluster, version), &cluster_body(&names, "judged", version)).await?.expect(201)?;
    arm.get(&at(&cluster, version)).await?.expect(200)?;
    arm.put(&at(&pool, version), &node_pool_body(version)).await?.expect(201)?;
    arm.put(&at(&auth, version), &external_auth_body(version)).await?.expect(201)?;
    backend.complete_all().await?;
    for path in [&cluster, &pool, &auth] {
        arm.get(&at(path, version)).await?.expect(200)?;
    }
    for list in [format!("{cluster}/nodePools"), format!("{cluster}/externalAuths")] {
        arm.get(&at(&list, version)).await?.expect(200)?;
    }
    arm.get(&below("hcpOpenShiftClusters")).await?.expect(200)?;
    let group = cluster.rsplit_once('/').context("a parent")?.0.to_owned();
    arm.get(&at(&group, version)).await?.expect(200)?;

    arm.put(&at(&cluster, version), &cluster_body(&names, "judged", version)).await?.expect(200)?;
    arm.put(&at(&pool, version), &node_pool_body(version)).await?.expect(200)?;
    arm.put(&at(&auth, version), &external_auth_body(version)).await?.expect(200)?;
    backend.complete_all().await?;
    arm.patch(&at(&cluster, version), &json!({"properties": {"nodeDrainTimeoutMinutes": 3}}))
        .await?
        .expect(202)?;
    arm.patch(&at(&pool, version), &json!({"properties": {"replicas": 3}})).await?.expect(202)?;
    arm.patch(&at(&auth, version), &json!({"properties": {}})).await?.expect(202)?;
    backend.complete_all().await?;
    let csr = json!({"certificateSigningRequest": certificate_request(ADMIN)?});
    let body = (version >= ApiVersion::V2026_09_01Preview).then_some(&csr);
    arm.post(&at(&format!("{cluster}/requestAdminCredential"), version), body).await?.expect(202)?;
    arm.post(&at(&format!("{cluster}/revokeCredentials"), version), None).await?.expect(202)?;
    backend.complete_all().await?;
    arm.get(&at(&names.cluster("missing"), version)).await?.expect(404)?;
    arm.delete(&at(&auth, version)).await?.expect(202)?;
    arm.put(&at(&names.node_pool("judged", "np-2"), version), &node_pool_body(version)).await?.expect(201)?;
    backend.complete_all().await?;
    arm.delete(&at(&names.node_pool("judged", "np-2"), version)).await?.expect(202)?;
    backend.complete_all().await?;
    arm.delete(&at(&cluster, version)).await?.expect(202)?;
    backend.complete_all().await?;
    arm.delete(&at(&cluster, version)).await?.expect(204)?;
    Ok(arm.exchanges())
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_traffic_keeps_to_the_published_documents() -> Result<()> {
    let Some(specs) = clients::specs() else { return Ok(()) };
    let packages = clients::installed("node")?.join("node");
    let stack = Stack::start().await?;
    let mut exchanges = Vec::new();
    for version in ApiVersion::ALL.into_iter().filter(|version| *version < ApiVersion::V2026_10_01) {
        exchanges.extend(live(&stack, version).await?);
    }
    stack.stop().await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("exchanges.json");
    std::fs::write(&file, serde_json::to_vec(&exchanges)?)?;
    let output = Command::new("node")
        .arg(clients::directory().join("oav_check.js"))
        .arg(specs.join("arm-hcp"))
        .arg(&file)
        .env("NODE_PATH", packages.join("node_modules"))
        .kill_on_drop(true)
        .output()
        .await?;
    clients::succeeded(&output, "judge the traffic")?;
    let verdict: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stdout).into_owned())?;
    ensure!(
        verdict["judged"].as_u64() >= Some(exchanges.len() as u64),
        "everything was judged: {}",
        verdict["judged"]
    );

    let allowed: Vec<Value> =
        serde_json::from_slice(&std::fs::read(clients::directory().join("oav-allowed.json"))?)?;
    let mut used = vec![false; allowed.len()];
    let mut unexpected = Vec::new();
    for violation in verdict["violations"].as_array().into_iter().flatten() {
        match allowed.iter().position(|allowed| covers(allowed, violation)) {
            Some(index) => used[index] = true,
            None => unexpected.push(violation.to_string()),
        }
    }
    unexpected.sort();
    unexpected.dedup();
    ensure!(unexpected.is_empty(), "{} violations:\n{}", unexpected.len(), unexpected.join("\n"));
    let stale: Vec<&Value> =
        allowed.iter().zip(used).filter(|(_, used)| !used).map(|(allowed, _)| allowed).collect();
    ensure!(stale.is_empty(), "allowed, but no longer needed: {stale:?}");
    Ok(())
}

/// An allowance names the code and a part of the message, and gives its reason.
fn covers(allowed: &Value, violation: &Value) -> bool {
    let text = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
    text(allowed, "code") == text(violation, "code")
        && text(allowed, "side") == text(violation, "side")
        && text(violation, "message").contains(&text(allowed, "message"))
        && (allowed["where"].is_null() || text(violation, "where").contains(&text(allowed, "where")))
        && !text(allowed, "reason").is_empty()
}
