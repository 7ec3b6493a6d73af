//! Typed operations, paging, polling and errors, without faults.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_base::{Class, Classify as _, Secret};
use aro_cloud::resources::{
    FederatedCredentialSpec, Frontend, FrontendAddress, GroupSpec, LoadBalancerSpec, NsgSpec, OutboundRule,
    PrincipalType, PublicIpSpec, RecordData, RecordSet, SecurityRule, SubnetSpec, Tags, VnetSpec,
};
use aro_cloud::{ArmClient, CloudConfig, Failure, SecretSpec};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::{Scripted, Style, World};

fn network(pairs: &[(&str, &str)]) -> ResourceId {
    ResourceId::in_group("s", "g", "Microsoft.Network", pairs)
}

fn client(world: &Arc<World>) -> ArmClient {
    let cloud = world.cloud();
    cloud.arm(cloud.client_secret("tenant", "client", Secret::new("secret".to_owned())))
}

fn fix(world: &World, path: &str, replies: Vec<Scripted>) {
    world.model.lock().fixed.insert(path.to_ascii_lowercase(), replies);
}

fn vnet_spec(prefix: &str) -> VnetSpec {
    VnetSpec { location: "uksouth".into(), address_prefixes: vec![prefix.into()], tags: Tags::new() }
}

#[tokio::test(start_paused = true)]
async fn a_network_keeps_the_subnets_that_it_does_not_name() {
    let world = World::faultless(Style::AsyncOperation);
    let (arm, vnet) = (client(&world), network(&[("virtualNetworks", "v")]));
    arm.ensure_vnet(&vnet, &vnet_spec("10.0.0.0/16")).await.unwrap();
    {
        let mut model = world.model.lock();
        let stored = model.resources.get_mut(&vnet.to_lower()).unwrap();
        stored["properties"]["subnets"] = json!([{"id": format!("{vnet}/subnets/nodes"), "name": "nodes"}]);
    }
    let changed = arm.ensure_vnet(&vnet, &vnet_spec("10.1.0.0/16")).await.unwrap();
    assert_eq!(changed.properties.subnets.len(), 1);
    assert_eq!(world.model.lock().changes[&vnet.to_lower()], 2);
}

#[tokio::test(start_paused = true)]
async fn a_security_group_is_attached_and_detached_without_touching_the_rest() {
    let world = World::faultless(Style::Immediate);
    let arm = client(&world);
    let subnet = network(&[("virtualNetworks", "v"), ("subnets", "nodes")]);
    let nsg = network(&[("networkSecurityGroups", "n")]);
    let rules = vec![SecurityRule::allow_tcp("apiserver_in", 120, 6443)];
    let spec = NsgSpec { location: "uksouth".into(), rules, tags: Tags::new() };
    arm.ensure_nsg(&nsg, &spec).await.unwrap();
    arm.ensure_nsg(&nsg, &spec).await.unwrap();
    assert_eq!(world.model.lock().changes[&nsg.to_lower()], 1);
    let wanted = SubnetSpec { address_prefix: "10.0.0.0/24".into(), ..SubnetSpec::default() };
    arm.ensure_subnet(&subnet, &wanted).await.unwrap();
    let attached = arm.attach_nsg(&subnet, &nsg).await.unwrap();
    assert_eq!(attached.properties.network_security_group.unwrap().id, nsg);
    let other = network(&[("networkSecurityGroups", "other")]);
    arm.detach_nsg(&subnet, &other).await.unwrap();
    assert!(arm.find_subnet(&subnet).await.unwrap().unwrap().properties.network_security_group.is_some());
    arm.detach_nsg(&subnet, &nsg).await.unwrap();
    let subnet = arm.find_subnet(&subnet).await.unwrap().unwrap();
    assert_eq!(subnet.properties.network_security_group, None);
    assert_eq!(subnet.properties.address_prefix.as_deref(), Some("10.0.0.0/24"));
}

#[tokio::test(start_paused = true)]
async fn the_way_out_of_a_cluster_is_made_once() {
    let world = World::faultless(Style::ProvisioningState);
    let arm = client(&world);
    let (ip, balancer) = (network(&[("publicIPAddresses", "ip")]), network(&[("loadBalancers", "lb")]));
    let ip_spec = PublicIpSpec { location: "uksouth".into(), ..PublicIpSpec::default() };
    let spec = LoadBalancerSpec {
        location: "uksouth".into(),
        frontends: vec![Frontend { name: "out".into(), address: FrontendAddress::PublicIp(ip.clone()) }],
        pools: vec!["nodes".into()],
        outbound: Some(OutboundRule {
            name: "out".into(),
            pool: "nodes".into(),
            frontends: vec!["out".into()],
            ports: 1024,
            idle_minutes: 30,
        }),
        tags: Tags::new(),
    };
    for _ in 0..2 {
        arm.ensure_public_ip(&ip, &ip_spec).await.unwrap();
        arm.ensure_load_balancer(&balancer, &spec).await.unwrap();
    }
    let model = world.model.lock();
    assert_eq!((model.changes[&ip.to_lower()], model.changes[&balancer.to_lower()]), (1, 1));
    let rule = &model.resources[&balancer.to_lower()]["properties"]["outboundRules"][0]["properties"];
    assert_eq!(rule["backendAddressPool"]["id"], format!("{balancer}/backendAddressPools/nodes"));
}

#[tokio::test(start_paused = true)]
async fn a_child_zone_is_delegated_to_its_name_servers() {
    let world = World::faultless(Style::Immediate);
    let arm = client(&world);
    let zone = |name| network(&[("dnsZones", name)]);
    let (parent, child) = (zone("aroapp-hcp.io"), zone("aro.x.aroapp-hcp.io"));
    arm.ensure_zone(&parent, &Tags::new()).await.unwrap();
    arm.ensure_zone(&child, &Tags::new()).await.unwrap();
    assert!(arm.ensure_delegation(&parent, &child).await.is_err(), "no name servers yet");
    world.model.lock().resources.get_mut(&child.to_lower()).unwrap()["properties"]["nameServers"] =
        json!(["ns1.azure-dns.com.", "ns2.azure-dns.net."]);
    arm.ensure_delegation(&parent, &child).await.unwrap();
    arm.ensure_delegation(&parent, &child).await.unwrap();
    let key = format!("{}/ns/aro.x", parent.to_lower());
    assert_eq!(world.model.lock().changes[&key], 1);
    assert!(matches!(
        arm.ensure_delegation(&child, &parent).await.unwrap_err().failure(),
        Failure::Mismatch(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_cluster_has_is_not_taken() {
    let world = World::faultless(Style::Immediate);
    let (arm, zone) = (client(&world), network(&[("dnsZones", "z")]));
    let set = |owner: &str| RecordSet {
        name: "api".into(),
        ttl: 300,
        data: RecordData::A(vec![[127, 0, 0, 1].into()]),
        metadata: Tags::from([("resourceId".to_owned(), owner.to_owned())]),
    };
    arm.create_record_set(&zone, &set("a")).await.unwrap();
    assert!(arm.create_record_set(&zone, &set("b")).await.unwrap_err().is_changed());
    arm.delete_record_set(&zone, "A", "api").await.unwrap();
    arm.delete_record_set(&zone, "A", "api").await.unwrap();
    arm.create_record_set(&zone, &set("b")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_managed_resource_group_of_another_cluster_is_refused() {
    let world = World::faultless(Style::ProvisioningState);
    let arm = client(&world);
    let spec = |manager: &str| GroupSpec {
        location: "uksouth".into(),
        managed_by: Some(ResourceId::in_group(
            "s",
            "c",
            "Microsoft.RedHatOpenShift",
            &[("hcpOpenShiftClusters", manager)],
        )),
        tags: Tags::new(),
    };
    arm.ensure_resource_group("s", "mrg", &spec("a")).await.unwrap();
    arm.ensure_resource_group("s", "MRG", &spec("A")).await.unwrap();
    let error = arm.ensure_resource_group("s", "mrg", &spec("b")).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Mismatch("manager")));
    assert_eq!(error.class(), Class::Terminal);
    let elsewhere = GroupSpec { location: "westus".into(), ..spec("a") };
    let error = arm.ensure_resource_group("s", "mrg", &elsewhere).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Mismatch("location")));
    arm.delete_resource_group("s", "mrg").await.unwrap();
    assert_eq!(arm.find_resource_group("s", "mrg").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_role_assignment_that_exists_is_success() {
    let world = World::faultless(Style::Immediate);
    let arm = client(&world);
    let scope = network(&[("virtualNetworks", "v")]);
    let (principal, role) = (Uuid::from_u128(1), Uuid::from_u128(2));
    for _ in 0..2 {
        arm.ensure_role_assignment(&scope, &principal, PrincipalType::ServicePrincipal, &role).await.unwrap();
    }
    assert_eq!(world.model.lock().count(Method::PUT, ""), 1);
    let other = network(&[("virtualNetworks", "w")]);
    let name = aro_cloud::resources::role_assignment_name(&other, &principal, &role);
    let path = format!("{other}/providers/Microsoft.Authorization/roleAssignments/{name}");
    let exists =
        json!({"error": {"code": "RoleAssignmentExists", "message": "The role assignment already exists."}});
    fix(&world, &path, vec![(404, vec![], Value::Null), (409, vec![], exists)]);
    arm.ensure_role_assignment(&other, &principal, PrincipalType::ServicePrincipal, &role).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn writes_of_one_identitys_credentials_at_once_are_repeated() {
    let world = World::faultless(Style::Immediate);
    let identity =
        ResourceId::in_group("s", "g", "Microsoft.ManagedIdentity", &[("userAssignedIdentities", "i")]);
    let path = format!("{identity}/federatedIdentityCredentials/c");
    let busy = json!({"error": {"code": "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity", "message": "m"}});
    let made =
        json!({"id": path, "name": "c", "properties": {"issuer": "i", "subject": "s", "audiences": ["a"]}});
    fix(&world, &path, vec![(404, vec![], Value::Null), (409, vec![], busy), (201, vec![], made)]);
    let spec =
        FederatedCredentialSpec::service_account("https://issuer", "openshift-image-registry", "registry");
    client(&world).ensure_federated_credential(&identity, "c", &spec).await.unwrap();
    assert_eq!(world.model.lock().count(Method::PUT, "/c"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_operation_is_an_error_with_its_code() {
    for style in [Style::AsyncOperation, Style::ProvisioningState] {
        let world = World::faultless(style);
        world.model.lock().failure = Some(json!({"code": "SubnetIsFull", "message": "no address left"}));
        let error = client(&world)
            .ensure_vnet(&network(&[("virtualNetworks", "v")]), &vnet_spec("10.0.0.0/16"))
            .await
            .unwrap_err();
        assert_eq!(error.class(), Class::Terminal, "{error}");
        assert!(
            matches!(error.failure(), Failure::Operation { state, .. } if state == "Failed"),
            "{style:?}"
        );
        if style == Style::AsyncOperation {
            assert_eq!(error.code(), Some("SubnetIsFull"));
        }
        // What failed is written again, not taken as it is.
        world.model.lock().failure = None;
        client(&world)
            .ensure_vnet(&network(&[("virtualNetworks", "v")]), &vnet_spec("10.0.0.0/16"))
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_does_not_end_is_left_at_its_deadline() {
    let world = World::faultless(Style::AsyncOperation);
    world.model.lock().polls = u32::MAX;
    let began = tokio::time::Instant::now();
    let arm = client(&world).with_operation_deadline(Duration::from_mins(5));
    let error =
        arm.ensure_vnet(&network(&[("virtualNetworks", "v")]), &vnet_spec("10.0.0.0/16")).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Deadline(_)), "{error}");
    assert_eq!(error.class(), Class::Retry);
    assert!(began.elapsed() <= Duration::from_mins(5), "{:?}", began.elapsed());
    let polls = world.model.lock().seen.iter().filter(|seen| seen.path.starts_with("/operations/")).count();
    assert!((290..=300).contains(&polls), "one poll for each Retry-After: {polls}");
}

#[tokio::test(start_paused = true)]
async fn lists_follow_their_pages_on_the_same_host_only() {
    let world = World::faultless(Style::Immediate);
    let group = "/subscriptions/s/resourceGroups/g/resources";
    let item = |name: &str| json!({"id": format!("/subscriptions/s/resourceGroups/g/providers/P/t/{name}"), "type": "P/t"});
    let link = |host: &str| json!(format!("https://{host}{group}?api-version=1&$skiptoken=x"));
    let first = json!({"value": [item("a"), item("b")], "nextLink": link("management.azure.com")});
    fix(&world, group, vec![(200, vec![], first.clone()), (200, vec![], json!({"value": [item("c")]}))]);
    let listed = client(&world).list_resources("s", "g").await.unwrap();
    assert_eq!(listed.iter().map(|item| item.id.name()).collect::<Vec<_>>(), ["a", "b", "c"]);
    fix(&world, group, vec![(200, vec![], json!({"value": [], "nextLink": link("evil.test")}))]);
    let error = client(&world).list_resources("s", "g").await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Protocol(_)));
    assert!(world.model.lock().seen.iter().all(|seen| seen.host != "evil.test"));
    fix(&world, group, vec![(200, vec![], first)]);
    assert!(client(&world).list_resources("s", "g").await.is_err(), "pages without end");
}

#[tokio::test(start_paused = true)]
async fn an_operation_link_to_another_host_gets_no_token() {
    let world = World::faultless(Style::Immediate);
    let id = network(&[("virtualNetworks", "v")]);
    let link = ("location", "https://evil.test/operations/1".to_owned());
    fix(&world, id.as_str(), vec![(202, vec![link], Value::Null)]);
    assert!(client(&world).delete(&id, "1").await.is_err());
    assert!(world.model.lock().seen.iter().all(|seen| seen.host != "evil.test"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_role_is_waited_for_only_when_asked() {
    let forbidden = json!({"error": {"code": "AuthorizationFailed", "message": "m"}});
    let id = network(&[("virtualNetworks", "v")]);
    let replies = |refusals: usize| {
        let mut replies = vec![(403, vec![], forbidden.clone()); refusals];
        replies.push((200, vec![], json!({"id": id})));
        replies
    };
    let world = World::faultless(Style::Immediate);
    fix(&world, id.as_str(), replies(5));
    let error = client(&world).get::<Value>(&id, "1").await.unwrap_err();
    assert_eq!(error.class(), Class::Terminal);
    let patient = client(&world).waiting_for_roles(Duration::from_mins(10));
    patient.get::<Value>(&id, "1").await.unwrap();
    fix(&world, id.as_str(), replies(1000));
    let error = patient.get::<Value>(&id, "1").await.unwrap_err();
    assert!(matches!(error.class(), Class::Wait(_)));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_subscription_waits_as_long_as_it_is_asked_to() {
    let world = World::faultless(Style::Immediate);
    let id = network(&[("virtualNetworks", "v")]);
    let after = |seconds: &str| vec![("retry-after", seconds.to_owned())];
    fix(&world, id.as_str(), vec![(429, after("17"), Value::Null), (200, vec![], json!({"id": id}))]);
    let arm = client(&world);
    let began = tokio::time::Instant::now();
    arm.get::<Value>(&id, "1").await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(17) && began.elapsed() < Duration::from_secs(20));
    fix(&world, id.as_str(), vec![(429, after("600"), Value::Null)]);
    let error = arm.get::<Value>(&id, "1").await.unwrap_err();
    assert_eq!(error.class(), Class::Wait(Duration::from_mins(10)));
    let before = world.model.lock().seen.len();
    assert!(matches!(arm.get::<Value>(&id, "1").await.unwrap_err().class(), Class::Wait(_)));
    assert_eq!(world.model.lock().seen.len(), before, "nothing is sent while the subscription is paused");
}

#[tokio::test(start_paused = true)]
async fn requests_carry_the_correlation_id_and_api_version() {
    let world = World::faultless(Style::Immediate);
    let id = network(&[("virtualNetworks", "v")]);
    let error = client(&world).with_correlation_id("c-1").get::<Value>(&id, "2024-07-01").await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.correlation_id(), "c-1");
    let model = world.model.lock();
    let seen = model.seen.last().unwrap();
    assert_eq!(seen.headers["x-ms-correlation-request-id"], "c-1");
    assert_eq!(seen.query, "api-version=2024-07-01");
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_written_only_when_it_differs() {
    let world = World::faultless(Style::Immediate);
    let cloud = world.cloud();
    let credential = cloud.client_secret("tenant", "client", Secret::new("secret".to_owned()));
    let secrets = cloud.secrets(credential, "https://v.vault.azure.net".parse().unwrap());
    let spec = SecretSpec::new(Secret::new("value".to_owned()));
    assert!(secrets.find("uamsi-1").await.unwrap().is_none());
    for _ in 0..2 {
        assert_eq!(secrets.ensure("uamsi-1", &spec).await.unwrap().value.expose(), "value");
    }
    assert_eq!(world.model.lock().count(Method::PUT, "/secrets/uamsi-1"), 1);
    assert!(secrets.find("..").await.is_err(), "a name is one segment");
}

#[tokio::test(start_paused = true)]
async fn credentials_of_identities_are_fetched_in_the_tenant_of_the_challenge() {
    let world = World::faultless(Style::Immediate);
    let challenge = (
        "www-authenticate",
        r#"Bearer authorization="https://evil.test/the-tenant", resource="x""#.to_owned(),
    );
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i";
    let reply = json!({"explicit_identities": [{"resource_id": id, "client_id": "c", "client_secret": "cGZ4",
        "tenant_id": "t", "not_after": "2030-01-01T00:00:00Z"}]});
    fix(&world, "/ids/secret-path", vec![(401, vec![challenge], Value::Null), (200, vec![], reply)]);
    let cloud = world.cloud();
    let credential = cloud.client_secret("home", "client", Secret::new("secret".to_owned()));
    let plane = cloud.msi_data_plane(credential, "https://dummy.org");
    let url = Secret::new("https://identity.test/ids/secret-path?k=1".parse().unwrap());
    let got = plane.user_credentials(&url, &[ResourceId::parse(id).unwrap()]).await.unwrap();
    assert_eq!(got.explicit_identities[0].client_secret.as_ref().unwrap().expose(), "cGZ4");
    let model = world.model.lock();
    let token = model.seen.iter().find(|seen| seen.path.ends_with("/token")).unwrap();
    assert_eq!(
        (token.host.as_str(), token.path.as_str()),
        ("login.microsoftonline.com", "/the-tenant/oauth2/v2.0/token")
    );
    assert!(!model.seen[0].headers.contains_key("authorization"), "the first request has no token");
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline() {
    let world = World::faultless(Style::Immediate);
    let id = network(&[("virtualNetworks", "v")]);
    fix(&world, id.as_str(), vec![(500, vec![], Value::Null)]);
    let config = CloudConfig { retry_budget: 100, ..CloudConfig::default() };
    let cloud = world.cloud_with(config);
    let arm = cloud.arm(cloud.client_secret("t", "c", Secret::new("s".to_owned())));
    let began = tokio::time::Instant::now();
    let error = arm.with_deadline(Duration::from_secs(9)).get::<Value>(&id, "1").await.unwrap_err();
    assert!(began.elapsed() <= Duration::from_secs(9), "{:?}", began.elapsed());
    assert_eq!(error.status().unwrap(), 500);
}
