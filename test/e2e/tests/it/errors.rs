//! Wrong input gets the documented ARM error, with all problems at once, and never a 5xx.

use anyhow::Result;
use aro_fixtures::{cluster_body, node_pool_body, subscription_body};
use http::Method;
use serde_json::{Value, json};

use crate::support::{GA, at, put_cluster, registered};

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_json_are_refused_with_the_place() -> Result<()> {
    let (stack, names) = registered().await?;
    let path = at(&names.cluster("c1"), GA);
    for body in ["", "{", "nonsense", "{\"a\":}", "[1", "\u{0}", "null", "[]", "\"text\"", "5"] {
        let reply = stack
            .arm()
            .send_raw(Method::PUT, &path, Some("application/json"), body.into())
            .await?
            .expect(400)?;
        assert_eq!(reply.code(), "InvalidRequestContent", "{body}");
        let message = reply.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            message.starts_with("The request content was invalid and could not be deserialized: "),
            "{message}"
        );
        assert_eq!(reply.header("x-ms-error-code"), Some("InvalidRequestContent"));
    }
    let deep = "[".repeat(100_000);
    stack.arm().send_raw(Method::PUT, &path, Some("application/json"), deep.into()).await?.expect(400)?;
    let not_utf8 = vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}'];
    stack.arm().send_raw(Method::PUT, &path, Some("application/json"), not_utf8).await?.expect(400)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_body_and_a_wrong_media_type_are_refused() -> Result<()> {
    let (stack, names) = registered().await?;
    let path = at(&names.cluster("c1"), GA);
    let arm = stack.arm();
    let huge = vec![b' '; 4 * 1024 * 1024 + 1];
    let reply = arm.send_raw(Method::PUT, &path, Some("application/json"), huge).await?.expect(400)?;
    assert_eq!(reply.code(), "InvalidResource");
    for media_type in [Some("text/plain"), Some("application/merge-patch+json"), None] {
        let reply = arm.send_raw(Method::PUT, &path, media_type, b"{}".to_vec()).await?.expect(415)?;
        assert_eq!(reply.code(), "UnsupportedMediaType");
    }
    let reply =
        arm.send_raw(Method::PUT, &path, Some("Application/JSON; charset=utf-8"), b"{}".to_vec()).await?;
    assert_eq!(reply.status.as_u16(), 400, "media types match in any case and with parameters");
    assert_ne!(reply.code(), "UnsupportedMediaType");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_problems_of_a_body_are_told_at_once_with_exact_targets() -> Result<()> {
    let (stack, names) = registered().await?;
    let mut body = cluster_body(&names, "c1", GA);
    body["properties"]["network"]["serviceCidr"] = json!("10.128.0.0/16");
    body["properties"]["api"]["authorizedCidrs"] = json!([" 1.2.3.4", "x"]);
    body["properties"]["version"]["id"] = json!("4.22.1");
    body["properties"]["platform"]["subnetId"] = json!("/not/an/id");
    let reply = stack.arm().put(&at(&names.cluster("c1"), GA), &body).await?.expect(400)?;
    let error = reply.json()["error"].clone();
    assert!(reply.status.as_u16() == 400, "{error}");
    let mut wrong_types = cluster_body(&names, "c1", GA);
    wrong_types["properties"]["network"]["hostPrefix"] = json!("23");
    wrong_types["properties"]["nodeDrainTimeoutMinutes"] = json!({});
    wrong_types["tags"] = json!(["a"]);
    let error =
        stack.arm().put(&at(&names.cluster("c1"), GA), &wrong_types).await?.expect(400)?.json()["error"]
            .clone();
    let targets: Vec<&str> = error["details"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|detail| detail["target"].as_str())
        .collect();
    for target in ["properties.network.hostPrefix", "properties.nodeDrainTimeoutMinutes", "tags"] {
        assert!(targets.contains(&target), "{target} in {error}");
    }
    stack.arm().get(&at(&names.cluster("c1"), GA)).await?.expect(404)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_cidrs_are_told_on_the_network() -> Result<()> {
    let (stack, names) = registered().await?;
    let mut body = cluster_body(&names, "c1", GA);
    body["properties"]["network"]["machineCidr"] = json!("10.128.0.0/16");
    let error =
        stack.arm().put(&at(&names.cluster("c1"), GA), &body).await?.expect(400)?.json()["error"].clone();
    assert_eq!(error["code"], "InvalidRequestContent", "{error}");
    assert_eq!(error["target"], "properties.network", "{error}");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn api_versions_and_ids_are_checked_before_anything_else() -> Result<()> {
    let (stack, names) = registered().await?;
    let (arm, cluster) = (stack.arm(), names.cluster("c1"));
    let reply = arm.get(&cluster).await?.expect(400)?;
    assert_eq!(reply.code(), "InvalidParameter");
    assert_eq!(reply.json()["error"]["message"], "The request is missing required parameter 'api-version'.");
    let reply = arm.get(&format!("{cluster}?api-version=2020-01-01")).await?.expect(400)?;
    assert_eq!(reply.code(), "InvalidResourceType");
    assert!(reply.json()["error"]["message"].as_str().is_some_and(|text| text.contains("2020-01-01")));

    let bad_subscription = cluster.replace(&names.subscription, "not-a-uuid");
    assert_eq!(arm.get(&at(&bad_subscription, GA)).await?.expect(400)?.code(), "InvalidSubscriptionID");
    let bad_group = cluster.replace("rg-Test", &"g".repeat(91));
    assert_eq!(arm.get(&at(&bad_group, GA)).await?.expect(400)?.code(), "InvalidResourceGroupName");
    for bad in ["%FF", "a%2Fb"] {
        let path = cluster.replace("/c1", &format!("/{bad}"));
        assert_eq!(arm.get(&at(&path, GA)).await?.expect(400)?.code(), "InvalidResourceName");
    }
    for bad in ["1abc", "ends-", "under_score", &"x".repeat(55)] {
        let body = cluster_body(&names, "c1", GA);
        let reply = arm.put(&at(&names.cluster(bad), GA), &body).await?.expect(400)?;
        assert_eq!(reply.code(), "InvalidRequestContent", "{bad}");
    }
    let reply = arm.get("/no/such/path").await?.expect(404)?;
    assert_eq!(reply.json()["error"]["message"], "The requested path could not be found.");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_of_no_cluster_and_a_list_below_none_are_not_found() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm();
    arm.put(&at(&names.node_pool("none", "np"), GA), &node_pool_body(GA)).await?.expect(404)?;
    let reply = arm.get(&at(&format!("{}/nodePools", names.cluster("none")), GA)).await?.expect(404)?;
    assert_eq!(
        reply.json()["error"]["message"],
        "The resource 'Microsoft.RedHatOpenShift/hcpOpenShiftClusters/none' under resource group 'rg-Test' was not found."
    );
    arm.patch(&at(&names.cluster("none"), GA), &json!({})).await?.expect(404)?;
    arm.delete(&at(&names.node_pool("none", "np"), GA)).await?.expect(204)?;
    stack.stop().await
}

/// Every member of a valid body replaced by every other kind of value, one at a time: never a 5xx, never stored.
#[tokio::test(flavor = "multi_thread")]
async fn no_member_of_any_other_type_is_a_server_error() -> Result<()> {
    let (stack, names) = registered().await?;
    let body = cluster_body(&names, "c1", GA);
    let mut pointers = Vec::new();
    collect_pointers(&body, String::new(), &mut pointers);
    assert!(pointers.len() > 40);
    let path = at(&names.cluster("c1"), GA);
    for pointer in pointers {
        for value in [json!(null), json!(-1), json!(1e300), json!("�"), json!([]), json!({}), json!(true)] {
            let mut wrong = body.clone();
            if let Some(member) = wrong.pointer_mut(&pointer) {
                *member = value.clone();
            }
            let reply = stack.arm().put(&path, &wrong).await?;
            assert!(reply.status.as_u16() < 500, "{pointer} = {value}: {}", reply.status);
            if reply.status.is_success() {
                // It was harmless (an optional member, say); take it away for the next one.
                stack.arm().delete(&path).await?.expect(202)?;
                stack.backend()?.complete_all().await?;
            }
        }
    }
    stack.stop().await
}

fn collect_pointers(value: &Value, at: String, pointers: &mut Vec<String>) {
    if !at.is_empty() {
        pointers.push(at.clone());
    }
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                collect_pointers(value, format!("{at}/{}", escape(key)), pointers);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect_pointers(value, format!("{at}/{index}"), pointers);
            }
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_cluster_uses_no_other_may_use() -> Result<()> {
    let (stack, names) = registered().await?;
    put_cluster(stack.arm(), &names, "c1").await?;
    let mut thief = cluster_body(&names, "c2", GA);
    let owner = cluster_body(&names, "c1", GA);
    for member in ["managedResourceGroup", "subnetId", "networkSecurityGroupId", "vnetIntegrationSubnetId"] {
        thief["properties"]["platform"][member] = owner["properties"]["platform"][member].clone();
    }
    let error =
        stack.arm().put(&at(&names.cluster("c2"), GA), &thief).await?.expect(400)?.json()["error"].clone();
    let targets: Vec<&str> = error["details"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|detail| detail["target"].as_str())
        .collect();
    assert_eq!(
        targets,
        [
            "properties.platform.managedResourceGroup",
            "properties.platform.subnetId",
            "properties.platform.networkSecurityGroupId"
        ],
        "{error}"
    );
    // Once the owner is gone, its things are free.
    stack.arm().delete(&at(&names.cluster("c1"), GA)).await?.expect(202)?;
    stack.backend()?.complete_all().await?;
    stack.arm().put(&at(&names.cluster("c2"), GA), &thief).await?.expect(201)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_creates_that_want_one_subnet_at_once_exactly_one_wins() -> Result<()> {
    let (stack, names) = registered().await?;
    let subnet = cluster_body(&names, "shared", GA)["properties"]["platform"].clone();
    let mut attempts = tokio::task::JoinSet::new();
    for index in 0..8 {
        let (arm, names, subnet) = (stack.arm().clone(), names.clone(), subnet.clone());
        attempts.spawn(async move {
            let name = format!("c{index}");
            let mut body = cluster_body(&names, &name, GA);
            for member in ["subnetId", "vnetIntegrationSubnetId"] {
                body["properties"]["platform"][member] = subnet[member].clone();
            }
            arm.put(&at(&names.cluster(&name), GA), &body).await
        });
    }
    let mut created = 0;
    while let Some(reply) = attempts.join_next().await {
        let reply = reply??;
        match reply.status.as_u16() {
            201 => created += 1,
            other => assert_eq!((other, reply.code().as_str()), (400, "InvalidRequestContent")),
        }
    }
    assert_eq!(created, 1);
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subscription_decides_what_is_allowed() -> Result<()> {
    let (stack, names) = registered().await?;
    let (arm, cluster) = (stack.arm(), at(&names.cluster("c1"), GA));
    put_cluster(arm, &names, "c1").await?;
    let subscription = format!("/subscriptions/{}?api-version=2.0", names.subscription);
    for (state, get, put, delete) in
        [("Warned", 200, 409, 202), ("Suspended", 200, 409, 409), ("Unregistered", 400, 400, 400)]
    {
        arm.put(&subscription, &subscription_body(state)).await?.expect(200)?;
        arm.get(&cluster).await?.expect(get)?;
        let reply = arm.put(&cluster, &cluster_body(&names, "c1", GA)).await?.expect(put)?;
        assert_eq!(reply.code(), "InvalidSubscriptionState", "{state}");
        // Suspended: deleting is allowed, but this one is deleting already.
        arm.delete(&cluster).await?.expect(delete)?;
    }
    let other = aro_fixtures::Names::default();
    let reply = arm.get(&at(&other.cluster("c1"), GA)).await?.expect(400)?;
    assert_eq!(
        reply.json()["error"]["message"],
        format!("Request is not allowed in unregistered subscription '{}'.", other.subscription)
    );
    stack.stop().await
}
