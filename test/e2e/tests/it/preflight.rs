//! ARM's preflight of deployments.

use anyhow::Result;
use aro_fixtures::{Names, cluster_body, node_pool_body};
use serde_json::{Value, json};

use crate::support::{GA, put_cluster, registered};

fn resource(body: Value, kind: &str, name: &str) -> Value {
    let mut resource = body;
    resource["name"] = json!(name);
    resource["type"] = json!(format!("Microsoft.RedHatOpenShift/{kind}"));
    resource["apiVersion"] = json!(GA.as_str());
    resource
}

fn path(names: &Names) -> String {
    format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.RedHatOpenShift/deployments/d1/preflight?api-version=2020-10-01",
        names.subscription, names.group
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_is_judged_as_its_writes_would_be_and_nothing_is_stored() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm().without("x-ms-identity-url");
    let good = json!({"resources": [
        resource(cluster_body(&names, "c1", GA), "hcpOpenShiftClusters", "c1"),
        resource(node_pool_body(GA), "hcpOpenShiftClusters/nodePools", "c1/np1"),
        {"name": "other", "type": "Microsoft.Network/virtualNetworks", "apiVersion": "2024-01-01"},
    ]});
    let verdict = arm.post(&path(&names), Some(&good)).await?.expect(200)?.json();
    assert_eq!(verdict, json!({"status": "Succeeded"}));
    let list = format!(
        "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters?api-version={GA}",
        names.subscription
    );
    assert_eq!(arm.get(&list).await?.json(), json!({"value": []}));

    put_cluster(stack.arm(), &names, "c1").await?;
    let mut taken = cluster_body(&names, "c2", GA);
    taken["properties"]["platform"]["managedResourceGroup"] = json!("mrg-c1");
    let mut pool = node_pool_body(GA);
    pool["properties"]["platform"]["vmSize"] = json!("Standard_Huge");
    let bad = json!({"resources": [
        resource(taken, "hcpOpenShiftClusters", "c2"),
        resource(pool, "hcpOpenShiftClusters/nodePools", "c2/np1"),
    ]});
    let verdict = arm.post(&path(&names), Some(&bad)).await?.expect(200)?.json();
    assert_eq!(verdict["status"], "Failed");
    assert_eq!(verdict["error"]["message"], "Preflight validation failed on multiple resources");
    assert_eq!(verdict["error"]["details"][0]["message"], "Content validation failed for 'c2'");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_judged_yet_is_skipped() -> Result<()> {
    let (stack, names) = registered().await?;
    let mut unresolved = cluster_body(&names, "c1", GA);
    unresolved["properties"]["platform"]["subnetId"] = json!("[parameters('subnet')]");
    unresolved["properties"]["version"]["id"] = json!("nonsense");
    let mut old = resource(json!({}), "hcpOpenShiftClusters", "c2");
    old["apiVersion"] = json!("2001-01-01");
    let body = json!({"resources": [
        resource(unresolved, "hcpOpenShiftClusters", "c1"), old,
        resource(json!({}), "hcpOpenShiftClusters", "too/many"), 5, null,
    ]});
    let verdict = stack.arm().post(&path(&names), Some(&body)).await?.expect(200)?.json();
    assert_eq!(verdict, json!({"status": "Succeeded"}));
    let verdict = stack.arm().post(&path(&names), Some(&json!({"resources": 1}))).await?.expect(200)?.json();
    assert_eq!(verdict["error"]["code"], "InvalidRequestContent");
    stack.stop().await
}
