//! Weaknesses of the original that are none here. Those about one subject are tested with it; each test's name says
//! which it is.

use anyhow::Result;
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::cluster_body;
use http::Method;
use serde_json::json;

use crate::support::{GA, at, put_cluster, registered, with_ready_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_system_data_header_is_filled_and_a_malformed_one_is_the_callers_mistake() -> Result<()> {
    let (stack, names) = registered().await?;
    let path = at(&names.cluster("c1"), GA);
    let body = cluster_body(&names, "c1", GA);
    let header = "x-ms-arm-resource-system-data";
    for bad in ["{", "[]", "{\"createdByType\":\"Robot\"}", "{\"createdAt\":\"noon\"}"] {
        let reply = stack.arm().with(header, bad).put(&path, &body).await?.expect(400)?;
        assert_eq!(reply.code(), "InvalidParameter", "{bad}");
    }
    let created = stack.arm().without(header).put(&path, &body).await?.expect(201)?.json();
    assert_eq!(created["systemData"]["createdBy"], "Unknown-ARO-HCP-frontend");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_identity_url_is_told_with_the_other_problems() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm().without("x-ms-identity-url");
    let reply = arm.put(&at(&names.cluster("c1"), GA), &cluster_body(&names, "c1", GA)).await?.expect(400)?;
    assert_eq!(reply.code(), "InvalidRequestContent");
    assert!(reply.json()["error"]["message"].as_str().is_some_and(|text| text.starts_with("Required value")));
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_ids_in_bodies_and_keyless_kms_updates_are_never_server_errors() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let path = at(&names.cluster("c1"), GA);
    for id in [json!("nonsense"), json!(5), json!("/subscriptions"), json!(null)] {
        let mut body = cluster_body(&names, "c1", GA);
        body["id"] = id.clone();
        let reply = stack.arm().put(&path, &body).await?;
        assert!(reply.status.as_u16() < 500, "{id}");
        stack.backend()?.complete_all().await?;
    }
    for patch in [
        json!({"properties": {"etcd": {"dataEncryption": {"customerManaged": null}}}}),
        json!({"properties": {"etcd": {"dataEncryption": {"customerManaged": {"kms": null}}}}}),
        json!({"properties": {"etcd": {"dataEncryption": {"customerManaged": {"kms": {"activeKey": {"version": "new"}}}}}}}),
        json!({"properties": null}),
        json!(null),
    ] {
        let reply = stack.arm().patch(&path, &patch).await?;
        assert_eq!(reply.status.as_u16(), 400, "{patch}");
    }
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_is_405_with_allow() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm();
    for (method, path, allow) in [
        (Method::POST, names.cluster("c1"), "GET, PUT, PATCH, DELETE"),
        (Method::DELETE, format!("{}/nodePools", names.cluster("c1")), "GET"),
        (Method::GET, format!("{}/revokeCredentials", names.cluster("c1")), "POST"),
        (Method::DELETE, format!("/subscriptions/{}", names.subscription), "GET, PUT"),
    ] {
        let reply = arm.send(method, &at(&path, GA), None).await?.expect(405)?;
        assert_eq!(reply.header("allow"), Some(allow), "{path}");
        assert_eq!(reply.code(), "MethodNotAllowed");
    }
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_query_names_and_the_name_in_a_body_match_in_any_case() -> Result<()> {
    let (stack, names) = registered().await?;
    put_cluster(stack.arm(), &names, "MyCluster").await?;
    let shouted = names.cluster("MYCLUSTER").to_uppercase();
    let shown = stack.arm().get(&format!("{shouted}?API-VERSION={GA}")).await?.expect(200)?.json();
    assert_eq!(shown["id"], names.cluster("MyCluster").as_str(), "the id keeps the case it was made with");
    stack.backend()?.complete_all().await?;
    let mut body = cluster_body(&names, "MyCluster", GA);
    body["name"] = json!("mycluster");
    stack.arm().put(&format!("{shouted}?Api-Version={GA}"), &body).await?.expect(200)?;
    stack.backend()?.complete_all().await?;
    body["name"] = json!("another");
    let reply = stack.arm().put(&format!("{shouted}?Api-Version={GA}"), &body).await?.expect(400)?;
    assert_eq!(reply.json()["error"]["target"], "name");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replace_that_omits_the_managed_resource_group_keeps_it() -> Result<()> {
    let (stack, names) = registered().await?;
    let path = at(&names.cluster("c1"), GA);
    let mut body = cluster_body(&names, "c1", GA);
    body["properties"]["platform"].as_object_mut().map(|platform| platform.remove("managedResourceGroup"));
    let created = stack.arm().put(&path, &body).await?.expect(201)?.json();
    let group = created["properties"]["platform"]["managedResourceGroup"].clone();
    assert!(group.as_str().is_some_and(|group| group.starts_with("arohcp-c1-")), "{group}");
    stack.backend()?.complete_all().await?;
    let replaced = stack.arm().put(&path, &body).await?.expect(200)?.json();
    assert_eq!(replaced["properties"]["platform"]["managedResourceGroup"], group);
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_in_a_patch_replace_all_tags() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let path = at(&names.cluster("c1"), GA);
    let patched = stack.arm().patch(&path, &json!({"tags": {"new": "one"}})).await?.expect(202)?;
    assert_eq!(patched.json()["tags"], json!({"new": "one"}));
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn role_sets_that_are_advertised_are_served() -> Result<()> {
    let (stack, names) = registered().await?;
    let base = format!(
        "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/locations/UKSouth",
        names.subscription
    );
    for version in ApiVersion::ALL {
        let sets = stack
            .arm()
            .get(&at(&format!("{base}/hcpOperatorIdentityRoleSets"), version))
            .await?
            .expect(200)?;
        assert_eq!(sets.json()["value"].as_array().map(Vec::len), Some(4));
        let set = stack
            .arm()
            .get(&at(&format!("{base}/hcpOperatorIdentityRoleSets/4.22"), version))
            .await?
            .expect(200)?;
        assert_eq!(set.json()["properties"]["controlPlaneOperators"].as_array().map(Vec::len), Some(9));
        assert_eq!(set.json()["properties"]["dataPlaneOperators"].as_array().map(Vec::len), Some(3));
        stack
            .arm()
            .get(&at(&format!("{base}/hcpOperatorIdentityRoleSets/1.0"), version))
            .await?
            .expect(404)?;
        let versions =
            stack.arm().get(&at(&format!("{base}/hcpOpenShiftVersions"), version)).await?.expect(200)?;
        assert_eq!(versions.json()["value"].as_array().map(Vec::len), Some(119));
        stack.arm().get(&at(&format!("{base}/hcpOpenShiftVersions/4.22.11"), version)).await?.expect(200)?;
        stack.arm().get(&at(&format!("{base}/hcpOpenShiftVersions/4.99.0"), version)).await?.expect(404)?;
    }
    let operations = stack.arm().get("/providers/Microsoft.RedHatOpenShift/operations").await?.expect(200)?;
    assert_eq!(operations.json()["value"].as_array().map(Vec::len), Some(26));
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_external_auth_even_when_two_are_made_at_once() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let body = aro_fixtures::external_auth_body(GA);
    let (a_path, b_path) = (at(&names.external_auth("c1", "a"), GA), at(&names.external_auth("c1", "b"), GA));
    let (a, b) = tokio::join!(stack.arm().put(&a_path, &body), stack.arm().put(&b_path, &body));
    let mut statuses = [a?.status.as_u16(), b?.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 400]);
    stack.stop().await
}
