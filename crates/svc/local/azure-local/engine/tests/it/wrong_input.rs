//! Every member of valid bodies replaced by values of other kinds: the answer is a success or a refusal, never a 5xx.

use serde_json::{Value, json};

use crate::world::{OWNER, World, network};

fn bodies(group: &str) -> Vec<(String, Value)> {
    let base = format!("{group}/providers/Microsoft.Network");
    let of = |namespace: &str, rest: &str, version: &str| {
        format!("{group}/providers/{namespace}/{rest}?api-version={version}")
    };
    vec![
        (
            network(group, "virtualNetworks/v2"),
            json!({"location": "westus3", "tags": {"a": "b"}, "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "s", "properties": {"addressPrefix": "10.0.0.0/24", "networkSecurityGroup": {"id": format!("{base}/networkSecurityGroups/nsg")},
                "delegations": [{"name": "d", "properties": {"serviceName": "x"}}]}}]}}),
        ),
        (
            network(group, "networkSecurityGroups/n2"),
            json!({"location": "westus3", "properties": {"securityRules": [{"name": "r", "properties": {
            "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp"}}]}}),
        ),
        (
            network(group, "publicIPAddresses/p2"),
            json!({"location": "westus3", "sku": {"name": "Standard"}, "zones": ["1"],
            "properties": {"publicIPAllocationMethod": "Static", "dnsSettings": {"domainNameLabel": "x"}}}),
        ),
        (
            network(group, "loadBalancers/l2"),
            json!({"location": "westus3", "sku": {"name": "Standard"}, "properties": {
            "frontendIPConfigurations": [{"name": "f", "properties": {"publicIPAddress": {"id": format!("{base}/publicIPAddresses/p")}}}],
            "backendAddressPools": [{"name": "b"}], "probes": [{"name": "p", "properties": {"port": 80}}],
            "loadBalancingRules": [{"name": "r", "properties": {"frontendPort": 80, "backendPort": 80}}]}}),
        ),
        (
            of("Microsoft.KeyVault", "vaults/vault-2", "2024-11-01"),
            json!({"location": "westus3", "properties": {
            "tenantId": "00000000-0000-0000-0000-0000000000aa", "sku": {"family": "A", "name": "standard"}, "accessPolicies": [{"objectId": "x"}]}}),
        ),
        (
            of("Microsoft.Storage", "storageAccounts/account2", "2023-01-01"),
            json!({"location": "westus3", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": {}}),
        ),
        (
            of("Microsoft.ManagedIdentity", "userAssignedIdentities/i2", "2023-01-31"),
            json!({"location": "westus3", "tags": {}}),
        ),
        (
            of("Microsoft.Network", "dnsZones/example.com/A/www", "2018-05-01"),
            json!({"properties": {"TTL": 5, "ARecords": [{"ipv4Address": "192.0.2.1"}], "metadata": {"a": "b"}}}),
        ),
    ]
}

/// Every body with one member replaced.
fn mutants(body: &Value) -> Vec<Value> {
    let kinds = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("x"),
        json!([]),
        json!([[{}]]),
        json!({}),
        json!({"id": 7}),
    ];
    let mut found = Vec::new();
    for pointer in pointers(body, String::new()) {
        for kind in &kinds {
            let mut mutant = body.clone();
            if let Some(member) = mutant.pointer_mut(&pointer) {
                *member = kind.clone();
            }
            found.push(mutant);
        }
    }
    found
}

fn pointers(value: &Value, at: String) -> Vec<String> {
    let below: Vec<String> = match value {
        Value::Object(map) => {
            map.iter().flat_map(|(name, value)| pointers(value, format!("{at}/{name}"))).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, value)| pointers(value, format!("{at}/{index}")))
            .collect(),
        _ => Vec::new(),
    };
    std::iter::once(at).chain(below).collect()
}

#[tokio::test]
async fn no_body_makes_a_5xx() {
    let world = World::new().await;
    let group = world.group("g").await;
    world
        .put(&network(&group, "networkSecurityGroups/nsg"), json!({"location": "westus3"}))
        .await
        .expect(201);
    world.put(&network(&group, "publicIPAddresses/p"), json!({"location": "westus3"})).await.expect(201);
    let zone = format!("{group}/providers/Microsoft.Network/dnsZones/example.com?api-version=2018-05-01");
    world.put(&zone, json!({"location": "global"})).await.expect(201);
    let mut refused = 0;
    for (path, body) in bodies(&group) {
        for mutant in mutants(&body) {
            let reply = world.put(&path, mutant.clone()).await;
            assert!(!reply.status.is_server_error(), "{path} {mutant}: {} {}", reply.status, reply.body);
            refused += usize::from(reply.status.is_client_error());
            let read = world.get(&path).await;
            assert!(!read.status.is_server_error(), "{path} after {mutant}: {}", read.body);
        }
        let valid = world.put(&path, body).await;
        assert!(valid.status.is_success(), "{path}: {}", valid.body);
    }
    assert!(refused > 100, "{refused}");
}

#[tokio::test]
async fn bodies_that_are_no_objects_are_refused() {
    let world = World::new().await;
    let group = world.group("g").await;
    for body in ["", "[]", "7", "{", "\"a\"", "null"] {
        for path in [network(&group, "virtualNetworks/v"), format!("{group}x?api-version=2024-11-01")] {
            let reply = world
                .send(OWNER, http::Method::PUT, &path, axum::body::Body::from(body), &[])
                .await
                .expect(400);
            assert_eq!(reply.code(), "InvalidRequestContent", "{body}");
        }
    }
}
