//! Clusters: creation, updates, what a resource shows, how operations end.

use anyhow::Result;
use aro_fixtures::wait::until;
use http::Method;
use serde_json::json;

use crate::region::{Region, at};

#[tokio::test]
async fn create_succeeds_when_the_hosted_control_plane_works_and_shows_what_is_observed() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let accepted = region.put_cluster("Blue").await?;
    let path = region.cluster_in_service("Blue").await?;
    let id = path.rsplit('/').next().unwrap().to_owned();
    assert_eq!(id.len(), 32, "{id}");

    let name = region.names.cluster("Blue");
    region.state(&name, "Provisioning").await?;
    region.set_cluster_state(&path, "installing");
    region.set_cluster_state(&path, "ready");
    let provider = until("the release to be selected", || async {
        Ok(region
            .provider("Blue")
            .await
            .ok()
            .and_then(|provider| provider.spec.control_plane_version.desired_version))
    })
    .await?;
    assert_eq!(provider.to_string(), "4.22.10", "the newest but one");
    assert_eq!(region.arm.get(&at(&name)).await?.json()["properties"]["provisioningState"], "Provisioning");

    region.finish_cluster(&path);
    let body = region.state(&name, "Succeeded").await?;
    let properties = &body["properties"];
    assert_eq!(properties["dns"]["baseDomainPrefix"], "a7p4o0q6e6q3a5d");
    assert_eq!(properties["dns"]["baseDomain"], "uuok.uksouth.aroapp-hcp.io");
    assert_eq!(properties["api"]["url"], "https://api.a7p4o0q6e6q3a5d.uuok.uksouth.aroapp-hcp.io:443");
    assert_eq!(properties["console"]["url"], "https://console.example.com");
    assert_eq!(properties["platform"]["issuerUrl"], "https://issuer.example.com/x");
    assert_eq!(properties["version"]["id"], "4.22", "the patch release is not shown");
    assert_eq!(properties["status"]["conditions"][0]["type"], "RequirementsValid");
    assert_eq!(properties["status"]["conditions"][0]["status"], "True");
    let identities = body["identity"]["userAssignedIdentities"].as_object().unwrap();
    let known = identities.values().filter(|identity| identity["clientId"] == "client").count();
    assert_eq!(known, 9, "every operator of the control plane");

    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    let provider = region.provider("Blue").await?;
    assert_eq!(provider.status.serving_ca_bundle.as_deref(), Some("-----BEGIN CERTIFICATE-----"));
    assert_eq!(provider.status.hosted_cluster_namespace.as_deref(), Some("ocm-test-x"));
    assert_eq!(provider.status.control_plane_version.versions()[0].to_string(), "4.22.10");
    region.settled().await?;
    assert_eq!(region.cs.count(&Method::POST, "/clusters"), 2, "one dry run, one create");
    Region::stop(backend).await
}

#[tokio::test]
async fn an_update_is_complete_when_clusters_service_has_applied_it() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    let name = region.names.cluster("blue");
    let accepted =
        region.arm.patch(&at(&name), &json!({"properties": {"nodeDrainTimeoutMinutes": 30}})).await?;
    let accepted = accepted.expect(202)?;
    region.state(&name, "Updating").await?;
    let stored = region.cs.objects(&path)[0].1.clone();
    assert_eq!(stored["node_drain_grace_period"], json!({"unit": "minutes", "value": 30}));
    region.set_cluster_state(&path, "ready");
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    assert_eq!(region.state(&name, "Succeeded").await?["properties"]["nodeDrainTimeoutMinutes"], 30);

    // Nothing that Clusters Service knows about changes: there is nothing to wait for.
    let accepted = region.arm.patch(&at(&name), &json!({"tags": {"team": "red"}})).await?.expect(202)?;
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    assert_eq!(region.cs.count(&Method::PATCH, &path), 1);
    region.settled().await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn failed_inflight_checks_are_named_in_the_error_of_the_operation() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let accepted = region.put_cluster("blue").await?;
    let path = region.cluster_in_service("blue").await?;
    region.cs.put(
        &format!("{path}/inflight_checks/1"),
        json!({"kind": "InflightCheck", "id": "1", "name": "subnet-inflight", "state": "failed",
               "details": {"error": "subnet 'nodes' does not exist"}}),
    );
    region.cs.change(&path, |cluster| {
        cluster["state"] = json!("error");
        cluster["status"] = json!({"state": "error", "provision_error_code": "OCM4001", "provision_error_message": "checks failed"});
    });
    let status = region.ended(&accepted).await?;
    assert_eq!((&status["status"], &status["error"]["code"]), (&json!("Failed"), &json!("OCM4001")));
    assert_eq!(status["error"]["message"], "subnet-inflight: subnet 'nodes' does not exist");
    let body = region.state(&region.names.cluster("blue"), "Failed").await?;
    assert_eq!(body["properties"]["status"]["conditions"][0]["status"], "False");
    region.settled().await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn an_error_of_clusters_service_keeps_its_code_and_message() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let accepted = region.put_cluster("blue").await?;
    let path = region.cluster_in_service("blue").await?;
    region.cs.change(&path, |cluster| {
        cluster["state"] = json!("error");
        cluster["status"] = json!({"state": "error", "provision_error_code": "OCM3002", "provision_error_message": "no quota for DSv3"});
    });
    let status = region.ended(&accepted).await?;
    assert_eq!(
        (&status["error"]["code"], &status["error"]["message"]),
        (&json!("OCM3002"), &json!("no quota for DSv3"))
    );
    Region::stop(backend).await
}

#[tokio::test]
async fn a_create_that_takes_too_long_fails_and_heals_when_the_cluster_works_after_all() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let accepted = region.put_cluster("blue").await?;
    let path = region.cluster_in_service("blue").await?;
    region.set_cluster_state(&path, "installing");
    region.state(&region.names.cluster("blue"), "Provisioning").await?;
    region.advance(std::time::Duration::from_secs(3601))?;
    region.set_cluster_state(&path, "installing");
    let status = region.ended(&accepted).await?;
    let message = status["error"]["message"].as_str().unwrap();
    assert!(message.contains("before the deadline") && message.contains("installing"), "{message}");
    region.state(&region.names.cluster("blue"), "Failed").await?;

    region.finish_cluster(&path);
    region.state(&region.names.cluster("blue"), "Succeeded").await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn drift_in_clusters_service_is_undone_without_an_operation() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    region.cs.change(&path, |cluster| cluster["node_drain_grace_period"]["value"] = json!(99));
    until("the drift to be undone", || async {
        let value = region.cs.objects(&path)[0].1["node_drain_grace_period"]["value"].clone();
        Ok((value == 0).then_some(()))
    })
    .await?;
    assert_eq!(region.state(&region.names.cluster("blue"), "Succeeded").await?["name"], "blue");
    Region::stop(backend).await
}

#[tokio::test]
async fn the_correlation_id_and_trace_of_a_request_reach_clusters_service() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let arm = region.arm.with("x-ms-correlation-request-id", "corr-7").with("traceparent", trace);
    let body = aro_fixtures::cluster_body(&region.names, "blue", crate::region::GA);
    arm.put(&at(&region.names.cluster("blue")), &body).await?.expect(201)?;
    region.cluster_in_service("blue").await?;
    let headers = region.cs.headers();
    let correlated = headers.iter().filter(|headers| {
        headers
            .get("baggage")
            .is_some_and(|baggage| baggage.to_str().unwrap().contains("aro.correlation_id=corr-7"))
            && headers
                .get("traceparent")
                .is_some_and(|parent| parent.to_str().unwrap().contains("4bf92f3577b34da6a3ce929d0e0e4736"))
    });
    assert!(correlated.count() >= 2, "the dry run and the create");
    Region::stop(backend).await
}

#[tokio::test]
async fn ended_operations_are_counted_by_type_and_state() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    region.ready_cluster("blue").await?;
    until("the operation to be counted", || async {
        let metrics = region.metrics.encode();
        let mut counts =
            metrics.lines().filter(|line| line.starts_with("backend_operation_duration_seconds_count"));
        Ok(counts.any(|line| line.contains("create") && line.contains("Succeeded")).then_some(()))
    })
    .await?;
    Region::stop(backend).await
}
