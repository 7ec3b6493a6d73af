//! The frontend asks Clusters Service before anything is stored.

use anyhow::Result;
use aro_fixtures::cluster_body;
use aro_rp_e2e::clusters_service::Fault;
use http::Method;
use serde_json::json;

use crate::region::{GA, Region, at};

#[tokio::test]
async fn a_cluster_that_clusters_service_refuses_is_not_stored() -> Result<()> {
    let region = Region::start().await?;
    let reason = "The subnet does not exist";
    region.cs.fault(Method::POST, "/clusters", [Fault::Refuse(400, reason.to_owned())]);
    let name = region.names.cluster("blue");
    let refused = region.arm.put(&at(&name), &cluster_body(&region.names, "blue", GA)).await?.expect(400)?;
    assert_eq!(refused.json()["error"], json!({"code": "InvalidRequestContent", "message": reason}));
    assert_eq!(region.arm.get(&at(&name)).await?.status, 404);
    assert_eq!(region.left().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn without_clusters_service_a_create_is_503_and_nothing_is_stored() -> Result<()> {
    let region = Region::start().await?;
    region.cs.set_away(true);
    let name = region.names.cluster("blue");
    let refused = region.arm.put(&at(&name), &cluster_body(&region.names, "blue", GA)).await?.expect(503)?;
    assert_eq!(refused.code(), "ServiceUnavailable");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(region.left().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn lack_of_capacity_and_unknown_versions_are_refused_before_anything_is_stored() -> Result<()> {
    let region = Region::start().await?;
    let name = region.names.cluster("blue");
    region.cs.fault(Method::POST, "/clusters", [Fault::Refuse(404, "Unable to find shard".to_owned())]);
    let full = region.arm.put(&at(&name), &cluster_body(&region.names, "blue", GA)).await?.expect(503)?;
    assert_eq!(full.json()["error"]["message"], "Capacity is currently restricted, please try again later");

    let mut body = cluster_body(&region.names, "blue", GA);
    body["properties"]["version"]["id"] = json!("4.23");
    let unknown = region.arm.put(&at(&name), &body).await?.expect(400)?;
    let error = &unknown.json()["error"];
    assert_eq!(error["target"], "properties.version.id");
    assert_eq!(error["message"], "OpenShift version '4.23' is not offered in channel group 'stable'");
    assert_eq!(region.left().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn versions_are_those_of_clusters_service_and_stay_known_while_it_is_away() -> Result<()> {
    let region = Region::start().await?;
    let list = at(&format!(
        "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/locations/uksouth/hcpOpenShiftVersions",
        region.names.subscription
    ));
    let listed = region.arm.get(&list).await?.expect(200)?.json();
    let names: Vec<&str> =
        listed["value"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["4.19.3", "4.21.0", "4.22.10", "4.22.11", "4.22.9"], "sorted as text");
    region.cs.set_away(true);
    region.arm.get(&list).await?.expect(200)?;
    Ok(())
}
