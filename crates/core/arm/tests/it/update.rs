//! What a replace keeps, resets, and refuses.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::version::ApiVersion::{self, *};
use serde_json::{Value, json};

use crate::fixtures::*;

fn immutable(path: &str) -> Vec<String> {
    vec![format!("{path}: Forbidden: field is immutable")]
}

#[test]
fn create_only_members_of_a_cluster_cannot_change() {
    let operators = "properties.platform.operatorsAuthentication.userAssignedIdentities";
    let kms = "properties.etcd.dataEncryption.customerManaged.kms";
    let rows: &[(&str, Value)] = &[
        ("properties.version.channelGroup", json!("stable")),
        ("properties.dns.baseDomainPrefix", json!("other")),
        ("properties.network.networkType", json!("OVNKubernetes")),
        ("properties.network.podCidr", json!("10.136.0.0/14")),
        ("properties.network.serviceCidr", json!("172.29.0.0/16")),
        ("properties.network.machineCidr", json!("10.2.0.0/16")),
        ("properties.network.hostPrefix", json!(25)),
        ("properties.api.visibility", json!("Private")),
        ("properties.ingress.type", json!("Public")),
        ("properties.platform.managedResourceGroup", json!("other")),
        ("properties.platform.subnetId", json!(subnet("other"))),
        ("properties.platform.vnetIntegrationSubnetId", json!(subnet("other"))),
        (
            "properties.platform.networkSecurityGroupId",
            json!(arm("Microsoft.Network/networkSecurityGroups/x")),
        ),
        (&format!("{operators}.dataPlaneOperators"), json!({"other": mi("dp")})),
        (&format!("{kms}.vaultName"), json!("other")),
        (&format!("{kms}.visibility"), json!("Public")),
        (&format!("{kms}.keyVaultType"), json!("KeyVault")),
        (&format!("{kms}.activeKey.name"), json!("other")),
        ("properties.clusterImageRegistry.state", json!("Enabled")),
        ("properties.cryptoRestrictions", json!("None")),
    ];
    for (path, value) in rows {
        assert_eq!(replacing::<Cluster>(NEWEST, path, value.clone()), immutable(path), "{path}");
        let mut patch = json!({});
        set(&mut patch, path, value.clone());
        let patched = Cluster::made(NEWEST).patch(NEWEST, &patch, &World::cluster().cx());
        let problems = patched.map_or_else(list, |_| vec![]);
        // A patch adds to a map, so the identity is then used twice as well.
        assert!(
            problems.ends_with(&immutable(path)) || problems.starts_with(&immutable(path)),
            "{path}: {problems:?}"
        );
    }
}

#[test]
fn updatable_members_of_a_cluster_can_change_in_every_version() {
    for version in ApiVersion::ALL {
        for (path, value) in [
            ("tags", json!({"a": "b"})),
            ("properties.api.authorizedCidrs", json!(["1.2.3.4"])),
            ("properties.autoscaling.maxNodesTotal", json!(9)),
            ("properties.autoscaling.podPriorityThreshold", json!(3)),
            ("properties.nodeDrainTimeoutMinutes", json!(0)),
        ] {
            let mut body = cluster_body(version);
            set(&mut body, path, value.clone());
            let cluster = Cluster::made(version).replace(version, &body, &World::cluster().cx()).unwrap();
            assert_eq!(get(&cluster.render(version), path), Some(&value), "{path} in {version}");
        }
    }
    let mirrors = json!([{"source": "a.io", "mirrors": ["b.io"]}]);
    assert!(replacing::<Cluster>(V2025_12_23Preview, "properties.imageDigestMirrors", mirrors).is_empty());
    let registry = json!({"managedIdentity": mi("other")});
    assert!(replacing::<Cluster>(NEWEST, "properties.platform.containerRegistry", registry).is_empty());
}

#[test]
fn a_member_can_become_updatable_with_a_version() {
    let at = "properties.etcd.dataEncryption.customerManaged.kms.activeKey.version";
    for version in ApiVersion::ALL {
        let problems = replacing::<Cluster>(version, at, json!("v2"));
        let expected = if version < V2026_06_30Preview { immutable(at) } else { vec![] };
        assert_eq!(problems, expected, "{version}");
    }
    let at = "properties.version.id";
    for version in ApiVersion::ALL {
        let problems = replacing::<Cluster>(version, at, json!("4.23"));
        let expected = if version < V2025_12_23Preview { immutable(at) } else { vec![] };
        assert_eq!(problems, expected, "{version}");
    }
}

#[test]
fn versions_go_up_one_minor_at_a_time() {
    let at = "properties.version.id";
    let wrong = |id: &str, why: &str| vec![format!("{at}: Invalid value: \"{id}\": {why}")];
    let version = V2026_09_01Preview;
    assert_eq!(replacing::<Cluster>(version, at, json!("4.21")), wrong("4.21", "may not decrease from 4.22"));
    assert_eq!(
        replacing::<Cluster>(version, at, json!("4.24")),
        wrong("4.24", "may not be more than one minor version above 4.22")
    );
    let world = World::cluster().experimental();
    let experimental = |from: &str, to: &str| {
        let mut body = cluster_body(version);
        set(&mut body, at, json!(from));
        let cluster = Cluster::create(version, &body, &world.cx()).unwrap();
        set(&mut body, at, json!(to));
        cluster.replace(version, &body, &world.cx()).map_or_else(list, |_| vec![])
    };
    assert_eq!(experimental("4.22", "5.0"), Vec::<String>::new());
    assert_eq!(experimental("4.21", "5.0"), wrong("5.0", "may not be upgraded to from 4.21"));
}

#[test]
fn a_node_pools_platform_is_one_thing() {
    for (path, value) in [
        ("properties.platform.vmSize", json!("Standard_D16s_v3")),
        ("properties.platform.subnetId", json!(subnet("other"))),
        ("properties.platform.availabilityZone", json!("2")),
        ("properties.platform.enableEncryptionAtHost", json!(false)),
        ("properties.platform.osDisk.sizeGiB", json!(256)),
        ("properties.platform.osDisk.diskStorageAccountType", json!("Premium_LRS")),
    ] {
        assert_eq!(replacing::<NodePool>(NEWEST, path, value), immutable("properties.platform"), "{path}");
    }
    for (path, value) in
        [("properties.autoRepair", json!(false)), ("properties.version.channelGroup", json!("stable"))]
    {
        let problems = replacing::<NodePool>(NEWEST, path, value);
        assert!(problems.contains(&immutable(path)[0]), "{problems:?}");
    }
}

#[test]
fn a_node_pool_can_be_scaled_labelled_and_upgraded() {
    for (path, value) in [
        ("properties.version.id", json!("4.22.4")),
        ("properties.autoScaling", json!({"min": 2, "max": 4})),
        ("properties.labels", json!([{"key": "x"}])),
        ("properties.taints", json!([])),
        ("properties.nodeDrainTimeoutMinutes", json!(null)),
    ] {
        assert_eq!(replacing::<NodePool>(NEWEST, path, value), Vec::<String>::new(), "{path}");
    }
    let mut body = node_pool_body(NEWEST);
    remove(&mut body, "properties.autoScaling");
    set(&mut body, "properties.replicas", json!(5));
    let pool = NodePool::made(NEWEST).replace(NEWEST, &body, &World::node_pool().cx()).unwrap();
    assert_eq!(pool.properties.auto_scaling, None);
    assert_eq!(pool.properties.replicas, 5);
}

#[test]
fn what_a_replace_omits_is_kept_where_the_service_or_an_earlier_choice_made_it() {
    let mut body = cluster_body(NEWEST);
    for path in [
        "tags",
        "properties.dns",
        "properties.platform.managedResourceGroup",
        "properties.etcd.dataEncryption.customerManaged.kms.keyVaultType",
    ] {
        remove(&mut body, path);
    }
    let cluster = Cluster::made(NEWEST);
    assert_eq!(cluster.replace(NEWEST, &body, &World::cluster().cx()).unwrap(), cluster);

    let mut body = node_pool_body(NEWEST);
    remove(&mut body, "properties.version.id");
    remove(&mut body, "properties.platform.subnetId");
    let pool = NodePool::made(NEWEST);
    assert_eq!(pool.replace(NEWEST, &body, &World::node_pool().cx()).unwrap(), pool);
}

#[test]
fn what_else_a_replace_omits_goes_back_to_its_default() {
    let mut body = cluster_body(NEWEST);
    for path in ["autoscaling", "nodeDrainTimeoutMinutes", "imageDigestMirrors", "platform.containerRegistry"]
    {
        remove(&mut body, &format!("properties.{path}"));
    }
    remove(&mut body, "properties.api.authorizedCidrs");
    let cluster = Cluster::made(NEWEST).replace(NEWEST, &body, &World::cluster().cx()).unwrap();
    let properties = &cluster.render(NEWEST)["properties"];
    assert_eq!(properties["autoscaling"]["podPriorityThreshold"], -10);
    assert_eq!(properties["nodeDrainTimeoutMinutes"], 0);
    assert_eq!(properties.get("imageDigestMirrors"), None);
    assert_eq!(properties["platform"].get("containerRegistry"), None);
    assert_eq!(properties["api"], json!({"visibility": "Public"}));
    let mut body = cluster_body(NEWEST);
    remove(&mut body, "properties.network.podCidr");
    let problems = problems_of(Cluster::made(NEWEST).replace(NEWEST, &body, &World::cluster().cx()));
    assert_eq!(problems, immutable("properties.network.podCidr"));
}

#[test]
fn a_missing_create_only_member_is_reported_once() {
    let mut body = cluster_body(NEWEST);
    remove(&mut body, "properties.platform.subnetId");
    assert_eq!(
        problems_of(Cluster::made(NEWEST).replace(NEWEST, &body, &World::cluster().cx())),
        ["properties.platform.subnetId: Required value"]
    );
}

#[test]
fn another_spelling_of_an_id_is_no_change() {
    let mut body = cluster_body(NEWEST);
    let shouted = subnet("nodes").to_uppercase().replace("/SUBSCRIPTIONS/", "/subscriptions/");
    set(&mut body, "properties.platform.subnetId", json!(shouted));
    let cluster = Cluster::made(NEWEST);
    assert_eq!(
        cluster.replace(NEWEST, &body, &World::cluster().cx()).unwrap().render(NEWEST),
        cluster.render(NEWEST)
    );
}

#[test]
fn what_the_service_wrote_survives_a_replace() {
    let mut cluster = Cluster::made(NEWEST);
    cluster.hosting.api_url = Some("https://api".into());
    cluster.service.cluster_service_id = Some("cs".into());
    cluster.service.active_operation_id = Some("op".into());
    cluster.identity.as_mut().unwrap().tenant_id = Some("t".into());
    for known in cluster.identity.as_mut().unwrap().user_assigned_identities.values_mut() {
        known.client_id = Some("c".into());
    }
    for version in ApiVersion::ALL {
        let again = cluster.replace(version, &cluster.render(version), &World::cluster().cx()).unwrap();
        assert_eq!(again, cluster, "{version}");
    }
}

#[test]
fn who_made_it_stays_and_who_changed_it_is_noted() {
    let cluster = Cluster::made(NEWEST);
    let mut world = World::cluster();
    world.now = "2026-11-16T00:00:00Z";
    let again = cluster.replace(NEWEST, &cluster_body(NEWEST), &world.cx()).unwrap();
    assert_eq!(again.system_data.created_at.as_deref(), Some("2026-11-15T10:00:00.0000000Z"));
    assert_eq!(again.system_data.last_modified_at.as_deref(), Some("2026-11-16T00:00:00.0000000Z"));
}

#[test]
fn stored_values_outlive_the_rules_they_were_judged_by() {
    let world = World::node_pool().experimental();
    let mut body = node_pool_body(NEWEST);
    set(&mut body, "properties.version", json!({"id": "4.19.1", "channelGroup": "candidate"}));
    let mut pool = NodePool::create(NEWEST, &body, &world.cx()).unwrap();
    pool.properties.platform.vm_size = "Standard_Gone_v1".into();
    let again = pool.replace(NEWEST, &pool.render(NEWEST), &World::node_pool().cx()).unwrap();
    assert_eq!(again, pool);
}
