use http::Method;
use serde_json::{Value, json};

use crate::world::{GROUPS, GUEST, SUBSCRIPTION, World, network};

const READER: &str = "acdd72a7-3385-48ef-bd42-f606fba81ae7";
const NAME: &str = "11111111-1111-1111-1111-111111111111";

fn assignment(scope: &str, name: &str) -> String {
    format!("{scope}/providers/Microsoft.Authorization/roleAssignments/{name}?api-version=2022-04-01")
}

fn grant(role: &str, principal: &str) -> Value {
    let id =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{role}");
    json!({"properties": {"roleDefinitionId": id, "principalId": principal}})
}

#[tokio::test]
async fn a_caller_without_the_role_gets_authorization_failed_until_it_is_assigned() {
    let world = World::new().await;
    let group = world.group("g").await;
    let path = format!("{group}?api-version={GROUPS}");
    let refused = world.call(GUEST, Method::GET, &path, None).await.expect(403);
    assert_eq!(refused.code(), "AuthorizationFailed");
    let message = refused.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("'Microsoft.Resources/subscriptions/resourceGroups/read'"), "{message}");
    world.put(&assignment(&group, NAME), grant(READER, GUEST)).await.expect(201);
    world.call(GUEST, Method::GET, &path, None).await.expect(200);
    world.call(GUEST, Method::DELETE, &path, None).await.expect(403);
    let deleted = world.delete(&assignment(&group, NAME)).await.expect(200);
    assert_eq!(deleted.body["name"], NAME, "clients decode the deleted assignment: {}", deleted.body);
    world.call(GUEST, Method::GET, &path, None).await.expect(403);
}

#[tokio::test]
async fn an_assignment_survives_a_restart() {
    let world = World::new().await;
    let group = world.group("g").await;
    world.put(&assignment(&group, NAME), grant(READER, GUEST)).await.expect(201);
    let world = world.restart(std::time::Duration::ZERO).await;
    world.call(GUEST, Method::GET, &format!("{group}?api-version={GROUPS}"), None).await.expect(200);
}

#[tokio::test]
async fn assignments_need_a_role_and_a_principal_that_exist_and_exist_once() {
    let world = World::new().await;
    let group = world.group("g").await;
    let unknown = "22222222-2222-2222-2222-222222222222";
    let path = assignment(&group, NAME);
    assert_eq!(
        world.put(&path, grant(unknown, GUEST)).await.expect(400).code(),
        "RoleDefinitionDoesNotExist"
    );
    assert_eq!(world.put(&path, grant(READER, unknown)).await.expect(400).code(), "PrincipalNotFound");
    world.put(&path, grant(READER, GUEST)).await.expect(201);
    assert_eq!(
        world.put(&assignment(&group, unknown), grant(READER, GUEST)).await.expect(409).code(),
        "RoleAssignmentExists"
    );
    let list = format!(
        "{group}/providers/Microsoft.Authorization/roleAssignments?api-version=2022-04-01&$filter=principalId eq '{GUEST}'"
    );
    let listed = world.get(&list.replace(' ', "%20").replace('\'', "%27")).await.expect(200);
    assert_eq!(listed.body["value"][0]["properties"]["scope"], group);
}

#[tokio::test]
async fn using_a_linked_resource_needs_the_join_action() {
    let world = World::new().await;
    let (own, other) = (world.group("own").await, world.group("other").await);
    let vnet = json!({"location": "westus3", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "s", "properties": {"addressPrefix": "10.0.0.0/24"}}]}});
    world.put(&network(&other, "virtualNetworks/v"), vnet).await.expect(201);
    let contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c";
    world.put(&assignment(&own, NAME), grant(contributor, GUEST)).await.expect(201);
    let subnet = format!("{other}/providers/Microsoft.Network/virtualNetworks/v/subnets/s");
    let nic = json!({"location": "westus3", "properties": {"ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": subnet}}}]}});
    let path = network(&own, "networkInterfaces/n");
    let refused = world.call(GUEST, Method::PUT, &path, Some(&nic)).await.expect(403);
    assert_eq!(refused.code(), "LinkedAuthorizationFailed");
    world
        .put(&assignment(&other, "33333333-3333-3333-3333-333333333333"), grant(contributor, GUEST))
        .await
        .expect(201);
    world.call(GUEST, Method::PUT, &path, Some(&nic)).await.expect(201);
}

#[tokio::test]
async fn a_principal_sees_only_subscriptions_in_which_it_has_a_role() {
    let world = World::new().await;
    let group = world.group("g").await;
    let path = "/subscriptions?api-version=2022-12-01";
    assert_eq!(world.get(path).await.body["value"].as_array().unwrap().len(), 1);
    assert_eq!(world.call(GUEST, Method::GET, path, None).await.body["value"], json!([]));
    world.put(&assignment(&group, NAME), grant(READER, GUEST)).await.expect(201);
    assert_eq!(world.call(GUEST, Method::GET, path, None).await.body["value"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_custom_role_works_by_action_patterns_and_cannot_go_while_it_is_assigned() {
    let world = World::new().await;
    let group = world.group("g").await;
    let definition = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{NAME}?api-version=2022-04-01"
    );
    let body = json!({"properties": {"roleName": "Group viewer", "assignableScopes": [format!("/subscriptions/{SUBSCRIPTION}")],
        "permissions": [{"actions": ["Microsoft.Resources/subscriptions/resourceGroups/*"], "notActions": ["*/delete"]}]}});
    world.put(&definition, body).await.expect(201);
    world.put(&assignment(&group, NAME), grant(NAME, GUEST)).await.expect(201);
    let path = format!("{group}?api-version={GROUPS}");
    world.call(GUEST, Method::GET, &path, None).await.expect(200);
    world.call(GUEST, Method::DELETE, &path, None).await.expect(403);
    assert_eq!(world.delete(&definition).await.expect(400).code(), "RoleDefinitionHasAssignments");
}
