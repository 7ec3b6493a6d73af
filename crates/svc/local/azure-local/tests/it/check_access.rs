use std::collections::BTreeMap;

use aro_arm::ResourceId;
use aro_cloud::{AccessRequest, Decision, Subject};
use url::Url;
use uuid::Uuid;

use crate::world::World;

fn endpoint() -> Url {
    Url::parse("https://westus3.authorization.azure.net").unwrap()
}

fn question(world: &World, principal: Uuid, resource: &ResourceId) -> AccessRequest {
    AccessRequest {
        tenant: world.account.tenant_id.to_string(),
        subject: Subject { object_id: principal.to_string(), ..Subject::default() },
        resource: resource.clone(),
        actions: vec![
            "Microsoft.Network/virtualNetworks/read".to_owned(),
            "Microsoft.Network/virtualNetworks/delete".to_owned(),
        ],
        data_actions: vec!["Microsoft.KeyVault/vaults/secrets/getSecret/action".to_owned()],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_follow_the_role_assignments_of_the_subject() {
    let world = World::start().await;
    let group = world.group("g").await;
    let id =
        ResourceId::parse(&format!("{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"))
            .unwrap();
    let identity = world.arm.ensure_identity(&id, "westus3", &BTreeMap::new()).await.unwrap();
    let principal: Uuid = identity.properties.principal_id.to_string().parse().unwrap();
    let client = world.cloud.check_access(world.credential.clone(), endpoint());
    let ask = async || {
        let decided = client.check(&question(&world, principal, &group)).await.unwrap();
        decided.into_iter().map(|decision| decision.access_decision).collect::<Vec<_>>()
    };
    use Decision::{Allowed, NotAllowed};
    assert_eq!(ask().await, [NotAllowed, NotAllowed, NotAllowed]);
    world.assign(&group, principal, "Reader").await;
    assert_eq!(ask().await, [Allowed, NotAllowed, NotAllowed]);
    world.assign(&group, principal, "Key Vault Secrets User").await;
    assert_eq!(ask().await, [Allowed, NotAllowed, Allowed]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_decisions_come_in_pages() {
    let world = World::start().await;
    let group = world.group("g").await;
    let client = world.cloud.check_access(world.credential.clone(), endpoint());
    let mut request = question(&world, world.principal().await, &group);
    request.actions = (0..120).map(|n| format!("Microsoft.Network/type{n}/read")).collect();
    request.data_actions.clear();
    let decisions = client.check(&request).await.unwrap();
    assert_eq!(decisions.len(), 120);
    assert!(decisions.iter().all(|decision| decision.access_decision == Decision::Allowed));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_of_another_tenant_is_refused() {
    let world = World::start().await;
    let client = world.cloud.check_access(world.credential.clone(), endpoint());
    let foreign = ResourceId::of_subscription("5e2c0000-0000-4000-8000-000000000011");
    let refused = client.check(&question(&world, Uuid::nil(), &foreign)).await.unwrap_err();
    assert_eq!(refused.status().map(|status| status.as_u16()), Some(403), "{refused}");
    world.stop().await;
}
