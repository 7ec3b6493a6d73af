use serde_json::json;

use crate::world::{OWNER, World, network};

fn vnet(subnets: serde_json::Value) -> serde_json::Value {
    json!({"location": "West US 3", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": subnets}})
}

#[tokio::test]
async fn a_network_is_created_read_listed_tagged_and_deleted() {
    let world = World::new().await;
    let group = world.group("g").await;
    let path = network(&group, "virtualNetworks/V1");
    let created = world
        .put(&path, vnet(json!([{"name": "a", "properties": {"addressPrefix": "10.0.1.0/24"}}])))
        .await
        .expect(201);
    assert!(created.headers.contains_key("azure-asyncoperation"));
    assert_eq!(created.body["location"], "westus3");
    assert_eq!(created.body["properties"]["provisioningState"], "Succeeded");
    let subnet = &created.body["properties"]["subnets"][0];
    assert_eq!(subnet["id"], format!("{group}/providers/Microsoft.Network/virtualNetworks/V1/subnets/a"));
    let read = world.get(&network(&group, "VIRTUALNETWORKS/v1")).await.expect(200);
    assert_eq!(read.body["name"], "V1");
    let listed = world.get(&network(&group, "virtualNetworks")).await.expect(200);
    assert_eq!(listed.body["value"].as_array().unwrap().len(), 1);
    let patch = json!({"tags": {"a": "b"}, "properties": {"addressSpace": {"addressPrefixes": []}}});
    let patched = world.call(OWNER, http::Method::PATCH, &path, Some(&patch)).await.expect(200);
    assert_eq!(patched.body["tags"], json!({"a": "b"}));
    assert_eq!(patched.body["properties"]["addressSpace"]["addressPrefixes"], json!(["10.0.0.0/16"]));
    world.delete(&path).await.expect(202);
    assert_eq!(world.get(&path).await.expect(404).code(), "ResourceNotFound");
    world.delete(&path).await.expect(204);
}

#[tokio::test]
async fn subnets_lie_inside_of_their_network_and_do_not_overlap() {
    let world = World::new().await;
    let group = world.group("g").await;
    let path = network(&group, "virtualNetworks/v");
    let outside = json!([{"name": "a", "properties": {"addressPrefix": "10.1.0.0/24"}}]);
    assert_eq!(world.put(&path, vnet(outside)).await.expect(400).code(), "NetcfgInvalidSubnet");
    let overlap = json!([{"name": "a", "properties": {"addressPrefix": "10.0.0.0/24"}}, {"name": "b", "properties": {"addressPrefix": "10.0.0.128/25"}}]);
    assert_eq!(world.put(&path, vnet(overlap)).await.expect(400).code(), "NetcfgSubnetRangesOverlap");
}

#[tokio::test]
async fn a_subnet_in_use_cannot_be_deleted_by_any_way() {
    let world = World::new().await;
    let group = world.group("g").await;
    let vnet_path = network(&group, "virtualNetworks/v");
    world.put(&vnet_path, vnet(json!([]))).await.expect(201);
    let subnet_path = network(&group, "virtualNetworks/v/subnets/s");
    let subnet =
        world.put(&subnet_path, json!({"properties": {"addressPrefix": "10.0.0.0/24"}})).await.expect(201);
    let id = subnet.body["id"].as_str().unwrap().to_owned();
    let nic = json!({"location": "westus3", "properties": {"ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": id}}}]}});
    let nic_path = network(&group, "networkInterfaces/n");
    world.put(&nic_path, nic).await.expect(201);
    assert_eq!(world.delete(&subnet_path).await.expect(400).code(), "InUseSubnetCannotBeDeleted");
    assert_eq!(world.put(&vnet_path, vnet(json!([]))).await.expect(400).code(), "InUseSubnetCannotBeDeleted");
    assert_eq!(world.delete(&vnet_path).await.expect(400).code(), "InUseSubnetCannotBeDeleted");
    world.delete(&nic_path).await.expect(202);
    world.delete(&subnet_path).await.expect(202);
    world.delete(&vnet_path).await.expect(202);
}

#[tokio::test]
async fn a_reference_to_nothing_is_refused() {
    let world = World::new().await;
    let group = world.group("g").await;
    let id = format!("{group}/providers/Microsoft.Network/virtualNetworks/v/subnets/s");
    let nic = json!({"location": "westus3", "properties": {"ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": id}}}]}});
    let refused = world.put(&network(&group, "networkInterfaces/n"), nic).await.expect(400);
    assert_eq!(refused.code(), "InvalidResourceReference");
}

#[tokio::test]
async fn public_addresses_are_unique_and_stay() {
    let world = World::new().await;
    let group = world.group("g").await;
    let body = json!({"location": "westus3", "sku": {"name": "Standard"}});
    let mut seen = std::collections::HashSet::new();
    for name in ["a", "b", "c"] {
        let path = network(&group, &format!("publicIPAddresses/{name}"));
        let first = world.put(&path, body.clone()).await.expect(201).body["properties"]["ipAddress"].clone();
        let again = world.put(&path, body.clone()).await.expect(200).body["properties"]["ipAddress"].clone();
        assert_eq!(first, again);
        assert!(seen.insert(first.to_string()));
    }
}

#[tokio::test]
async fn etags_guard_writes() {
    let world = World::new().await;
    let group = world.group("g").await;
    let path = network(&group, "virtualNetworks/v");
    let body = || axum::body::Body::from(vnet(json!([])).to_string());
    world.send(OWNER, http::Method::PUT, &path, body(), &[("if-none-match", "*")]).await.expect(201);
    let again =
        world.send(OWNER, http::Method::PUT, &path, body(), &[("if-none-match", "*")]).await.expect(412);
    assert_eq!(again.code(), "PreconditionFailed");
    let etag = world.get(&path).await.body["etag"].as_str().unwrap().to_owned();
    world.send(OWNER, http::Method::PUT, &path, body(), &[("if-match", &etag)]).await.expect(200);
    world.send(OWNER, http::Method::PUT, &path, body(), &[("if-match", &etag)]).await.expect(412);
}

#[tokio::test]
async fn record_sets_live_in_zones() {
    let world = World::new().await;
    let group = world.group("g").await;
    let dns =
        |rest: &str| format!("{group}/providers/Microsoft.Network/dnsZones/{rest}?api-version=2018-05-01");
    let record = json!({"properties": {"TTL": 60, "ARecords": [{"ipv4Address": "192.0.2.1"}]}});
    assert_eq!(
        world.put(&dns("example.com/A/www"), record.clone()).await.expect(404).code(),
        "ParentResourceNotFound"
    );
    world.put(&dns("example.com"), json!({"location": "global"})).await.expect(201);
    let created = world.put(&dns("example.com/A/www"), record).await.expect(201);
    assert_eq!(created.body["properties"]["fqdn"], "www.example.com.");
    let listed = world.get(&dns("example.com/recordsets")).await.expect(200);
    assert_eq!(listed.body["value"].as_array().unwrap().len(), 1);
    world
        .put(&dns("example.com/A/bad"), json!({"properties": {"ARecords": [{"ipv4Address": "x"}]}}))
        .await
        .expect(400);
    world.delete(&dns("example.com")).await.expect(200);
    world.get(&dns("example.com/A/www")).await.expect(404);
}

#[tokio::test]
async fn wrong_versions_types_and_locations_get_azures_codes() {
    let world = World::new().await;
    let group = world.group("g").await;
    let code = |path: String| {
        let world = &world;
        async move { world.put(&path, vnet(json!([]))).await.code().to_owned() }
    };
    let base = format!("{group}/providers");
    assert_eq!(
        code(format!("{base}/Microsoft.Network/virtualNetworks/v")).await,
        "MissingApiVersionParameter"
    );
    assert_eq!(
        code(format!("{base}/Microsoft.Network/virtualNetworks/v?api-version=1999-01-01")).await,
        "NoRegisteredProviderFound"
    );
    assert_eq!(
        code(format!("{base}/Microsoft.Network/virtualNetworks/v?api-version=latest")).await,
        "InvalidApiVersionParameter"
    );
    assert_eq!(
        code(format!("{base}/Microsoft.Network/rivers/v?api-version=2024-07-01")).await,
        "InvalidResourceType"
    );
    assert_eq!(
        code(format!("{base}/Contoso.Farm/farms/v?api-version=2024-07-01")).await,
        "InvalidResourceNamespace"
    );
    let gone = group.replace("/g", "/gone");
    assert_eq!(code(network(&gone, "virtualNetworks/v")).await, "ResourceGroupNotFound");
    let nowhere =
        json!({"location": "atlantis", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}});
    let refused = world.put(&network(&group, "virtualNetworks/v"), nowhere).await;
    assert_eq!(refused.code(), "LocationNotAvailableForResourceType");
}
