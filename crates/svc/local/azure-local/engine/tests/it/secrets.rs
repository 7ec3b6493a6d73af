use http::Method;
use serde_json::{Value, json};

use crate::world::{GUEST, OWNER, SUBSCRIPTION, World};

const STORAGE: &str = "2023-05-01";
const REGISTRY: &str = "2023-07-01";

async fn post(world: &World, path: &str, body: Value) -> crate::world::Reply {
    world.call(OWNER, Method::POST, path, Some(&body)).await
}

#[tokio::test]
async fn keys_of_a_storage_account_are_shown_by_their_action_only() {
    let world = World::new().await;
    let group = world.group("g").await;
    let account = format!("{group}/providers/Microsoft.Storage/storageAccounts/acct");
    let item = format!("{account}?api-version={STORAGE}");
    let made =
        world.put(&item, json!({"location": "westus3", "sku": {"name": "Standard_LRS"}})).await.expect(200);
    let list = format!("{account}/listKeys?api-version={STORAGE}");
    let keys = post(&world, &list, json!({})).await.expect(200).body["keys"].clone();
    assert_eq!(keys.as_array().unwrap().len(), 2, "{keys}");
    let key = keys[0]["value"].as_str().unwrap();
    assert!(!made.body.to_string().contains(key));
    assert!(!world.get(&item).await.body.to_string().contains(key));
    let refused = world.call(GUEST, Method::POST, &list, Some(&json!({}))).await.expect(403);
    assert_eq!(refused.code(), "AuthorizationFailed");

    let regenerate = format!("{account}/regenerateKey?api-version={STORAGE}");
    let renewed =
        post(&world, &regenerate, json!({"keyName": "key2"})).await.expect(200).body["keys"].clone();
    assert_eq!(renewed[0]["value"], keys[0]["value"]);
    assert_ne!(renewed[1]["value"], keys[1]["value"]);
    post(&world, &regenerate, json!({"keyName": "userDelegation"})).await.expect(400);
    post(&world, &regenerate, json!({})).await.expect(400);

    // A write of the account keeps its keys, also over a restart.
    world.put(&item, json!({"location": "westus3", "sku": {"name": "Standard_LRS"}})).await.expect(200);
    let world = world.restart(std::time::Duration::ZERO).await;
    assert_eq!(post(&world, &list, json!({})).await.expect(200).body["keys"], renewed);
}

#[tokio::test]
async fn passwords_of_a_registry_token_are_shown_once_and_bound_to_its_scope_map() {
    let world = World::new().await;
    let group = world.group("g").await;
    let registry = format!("{group}/providers/Microsoft.ContainerRegistry/registries/registry1");
    let path = |rest: &str| format!("{registry}{rest}?api-version={REGISTRY}");
    world.put(&path(""), json!({"location": "westus3", "sku": {"name": "Premium"}})).await.expect(201);
    let refused = post(&world, &path("/listCredentials"), json!({})).await.expect(400);
    assert_eq!(refused.code(), "AdminUserDisabled");
    let actions = json!({"properties": {"actions": ["repositories/ocp/content/read"]}});
    world.put(&path("/scopeMaps/pull"), actions).await.expect(201);
    let token = json!({"properties": {"scopeMapId": format!("{registry}/scopeMaps/pull")}});
    world.put(&path("/tokens/t"), token).await.expect(201);
    let ask = json!({"tokenId": format!("{registry}/tokens/t"), "name": "password1"});
    let made = post(&world, &path("/generateCredentials"), ask.clone()).await.expect(200).body;
    assert_eq!(made["username"], "t");
    let password = made["passwords"][0]["value"].as_str().unwrap().to_owned();
    let shown = world.get(&path("/tokens/t")).await.expect(200).body;
    assert_eq!(shown["properties"]["credentials"]["passwords"][0]["name"], "password1", "{shown}");
    assert!(!shown.to_string().contains(&password));

    let world = world.restart(std::time::Duration::ZERO).await;
    let permitted = world.cloud.registry_actions("registry1", "t", &password).await.unwrap();
    assert_eq!(permitted.unwrap(), ["repositories/ocp/content/read"]);
    assert_eq!(world.cloud.registry_actions("registry1", "t", "wrong").await.unwrap(), None);
    post(&world, &path("/generateCredentials"), ask).await.expect(200);
    assert_eq!(world.cloud.registry_actions("registry1", "t", &password).await.unwrap(), None, "replaced");
    let foreign = json!({"tokenId": format!("{group}/providers/Microsoft.ContainerRegistry/registries/other/tokens/t")});
    post(&world, &path("/generateCredentials"), foreign).await.expect(400);
}

#[tokio::test]
async fn a_deleted_vault_keeps_its_name_until_it_is_recovered_or_purged() {
    let world = World::new().await;
    let group = world.group("g").await;
    let vault = format!("{group}/providers/Microsoft.KeyVault/vaults/vault1?api-version=2023-07-01");
    let tenant = crate::world::TENANT;
    let sku = json!({"family": "A", "name": "standard"});
    let body =
        json!({"location": "westus3", "tags": {"a": "b"}, "properties": {"tenantId": tenant, "sku": sku}});
    world.put(&vault, body.clone()).await.expect(201);
    world.delete(&vault).await.expect(200);
    world.get(&vault).await.expect(404);
    assert_eq!(world.put(&vault, body.clone()).await.expect(409).code(), "ConflictError");

    let world = world.restart(std::time::Duration::ZERO).await;
    let base = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.KeyVault");
    let all = format!("{base}/deletedVaults?api-version=2023-07-01");
    let listed = world.get(&all).await.expect(200).body;
    assert_eq!(listed["value"][0]["properties"]["tags"], json!({"a": "b"}), "{listed}");
    let recover = json!({"location": "westus3", "properties": {"tenantId": tenant, "sku": sku, "createMode": "recover"}});
    let recovered = world.put(&vault, recover.clone()).await.expect(201).body;
    assert_eq!(recovered["tags"], json!({"a": "b"}), "as it was: {recovered}");
    assert_eq!(world.get(&all).await.expect(200).body["value"], json!([]));
    assert_eq!(world.put(&vault, recover).await.expect(409).code(), "VaultAlreadyExists");

    world.delete(&vault).await.expect(200);
    let one = format!("{base}/locations/westus3/deletedVaults/vault1");
    world.get(&format!("{one}?api-version=2023-07-01")).await.expect(200);
    let purge = format!("{one}/purge?api-version=2023-07-01");
    world.call(GUEST, Method::POST, &purge, None).await.expect(403);
    world.call(OWNER, Method::POST, &purge, None).await.expect(200);
    world.get(&format!("{one}?api-version=2023-07-01")).await.expect(404);
    world.put(&vault, body).await.expect(201);
}

#[tokio::test]
async fn a_deleted_vault_is_purged_when_its_retention_ends() {
    let world = World::new().await;
    let group = world.group("g").await;
    let vault = format!("{group}/providers/Microsoft.KeyVault/vaults/vault2?api-version=2023-07-01");
    let properties = json!({"tenantId": crate::world::TENANT, "sku": {"family": "A", "name": "standard"},
        "softDeleteRetentionInDays": 7, "enablePurgeProtection": true});
    let body = json!({"location": "westus3", "properties": properties});
    world.put(&vault, body.clone()).await.expect(201);
    world.delete(&vault).await.expect(200);
    let one = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.KeyVault/locations/westus3/deletedVaults/vault2"
    );
    let purge = format!("{one}/purge?api-version=2023-07-01");
    assert_eq!(world.call(OWNER, Method::POST, &purge, None).await.expect(409).code(), "MethodNotAllowed");
    world.clock.advance(aro_base::SignedDuration::from_hours(7 * 24));
    world.put(&vault, body).await.expect(201);
    world.get(&format!("{one}?api-version=2023-07-01")).await.expect(404);
}

#[tokio::test]
async fn compute_shows_what_it_offers_in_one_location() {
    let world = World::new().await;
    let base = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute");
    let skus = format!("{base}/skus?api-version=2021-07-01&$filter=location%20eq%20%27westus3%27");
    let shown = world.get(&skus).await.expect(200).body;
    let all = shown["value"].as_array().unwrap();
    assert!(all.iter().all(|sku| sku["locations"] == json!(["westus3"])));
    assert!(all.iter().any(|sku| sku["name"] == "Standard_D8s_v3"));
    let usages =
        world.get(&format!("{base}/locations/westus3/usages?api-version=2024-11-01")).await.expect(200);
    assert_eq!(usages.body["value"][0]["name"]["value"], "cores");
    let wrong = format!("{base}/skus?api-version=2021-07-01&$filter=name%20eq%20%27x%27");
    world.get(&wrong).await.expect(400);
}
