//! Admin credentials.

use anyhow::{Context, Result};
use aro_arm::hcp::version::ApiVersion;
use serde_json::json;

use crate::support::{GA, at, path_of, put_cluster, registered, with_ready_cluster};

/// A certificate request with this subject, made by the openssl that a customer would use.
pub fn certificate_request(subject: &str) -> Result<String> {
    let output = std::process::Command::new("openssl")
        .args(["req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", subject])
        .output()
        .context("run openssl")?;
    Ok(String::from_utf8(output.stdout)?)
}

pub const ADMIN: &str = "/CN=system:customer-break-glass:system-admin/O=system:masters";

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_asked_for_with_a_certificate_request_and_read_from_the_result() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let arm = stack.arm();
    let path = at(&format!("{}/requestAdminCredential", names.cluster("c1")), GA);
    let body = json!({"certificateSigningRequest": certificate_request(ADMIN)?});
    let accepted = arm.post(&path, Some(&body)).await?.expect(202)?;
    assert!(accepted.body.is_empty());
    let result = path_of(accepted.header("location").context("a result")?)?.to_owned();
    arm.get(&result).await?.expect(202)?;
    stack.backend()?.complete_all().await?;
    let credential = arm.get(&result).await?.expect(200)?;
    let text = String::from_utf8(credential.body.to_vec())?;
    assert!(text.find("expirationTimestamp") < text.find("kubeconfig"), "keys are in order");
    let shown = arm.get(&at(&names.cluster("c1"), GA)).await?.json();
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded", "the cluster's state is not touched");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_certificate_request_of_the_administrator_is_taken() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let path = at(&format!("{}/requestAdminCredential", names.cluster("c1")), GA);
    let wrong_subject = certificate_request("/CN=me/O=system:masters")?;
    let certificate = certificate_request(ADMIN)?.replace("CERTIFICATE REQUEST", "CERTIFICATE");
    for csr in [json!(null), json!(""), json!(5), json!("text"), json!(wrong_subject), json!(certificate)] {
        let reply =
            stack.arm().post(&path, Some(&json!({"certificateSigningRequest": csr}))).await?.expect(400)?;
        assert_eq!(reply.json()["error"]["target"], "certificateSigningRequest", "{csr}");
    }
    let both_wrong = certificate_request("/CN=me/O=mine")?;
    let reply = stack
        .arm()
        .post(&path, Some(&json!({"certificateSigningRequest": both_wrong})))
        .await?
        .expect(400)?;
    assert_eq!(reply.json()["error"]["details"].as_array().map(Vec::len), Some(2));
    // Older versions send none.
    let old = at(&format!("{}/requestAdminCredential", names.cluster("c1")), ApiVersion::V2026_06_30Preview);
    stack.arm().post(&old, None).await?.expect(202)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_cancels_requests_and_blocks_new_ones_until_it_is_done() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let arm = stack.arm();
    let old = ApiVersion::V2026_06_30Preview;
    let ask = at(&format!("{}/requestAdminCredential", names.cluster("c1")), old);
    let revoke = at(&format!("{}/revokeCredentials", names.cluster("c1")), GA);
    let asked = arm.post(&ask, None).await?.expect(202)?;
    let revoked = arm.post(&revoke, None).await?.expect(202)?;
    let status = path_of(asked.header("azure-asyncoperation").context("a status")?)?;
    assert_eq!(arm.get(status).await?.json()["status"], "Canceled");
    for path in [&ask, &revoke] {
        let reply = arm.post(path, None).await?.expect(409)?;
        assert_eq!(reply.header("retry-after"), Some("10"));
    }
    stack.backend()?.complete_all().await?;
    arm.get(path_of(revoked.header("location").context("a result")?)?).await?.expect(204)?;
    arm.post(&ask, None).await?.expect(202)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_a_cluster_that_is_not_at_rest_are_a_conflict_not_a_server_error() -> Result<()> {
    let (stack, names) = registered().await?;
    put_cluster(stack.arm(), &names, "c1").await?;
    for action in ["requestAdminCredential", "revokeCredentials"] {
        let path = at(&format!("{}/{action}", names.cluster("c1")), ApiVersion::V2026_06_30Preview);
        stack.arm().post(&path, None).await?.expect(409)?;
        let nowhere = at(&format!("{}/{action}", names.cluster("none")), ApiVersion::V2026_06_30Preview);
        stack.arm().post(&nowhere, None).await?.expect(404)?;
    }
    stack.stop().await
}
