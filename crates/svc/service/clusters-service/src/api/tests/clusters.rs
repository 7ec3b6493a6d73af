//! Clusters: creation, change, deletion.

use aro_ocm::{ClusterState, property};
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use super::bodies;
use super::fixture::{ARO, Fixture, V1, cluster_id};
use crate::config::ClustersServiceConfig;

fn clusters() -> String {
    format!("{ARO}/clusters")
}

#[tokio::test]
async fn a_created_cluster_is_placed_named_and_validating() {
    let fixture = Fixture::with_shard().await;
    let id = "2qrppk0otds3rdmdcojqcqkqq8f0s591";
    let mut body = bodies::cluster("one");
    body["id"] = json!(id);
    let created = fixture.post(&clusters(), body.clone()).await.expect(202);
    assert_eq!(created["id"], id, "the id of the client is kept");
    assert_eq!(created["href"], format!("{ARO}/clusters/{id}"));
    assert_eq!(
        (&created["state"], &created["status"]["state"]),
        (&json!("validating"), &json!("validating"))
    );
    assert_eq!(created["domain_prefix"], "one");
    let base = created["dns"]["base_domain"].as_str().unwrap();
    let (slug, zone) = base.split_once('.').unwrap();
    assert_eq!((slug.len(), zone), (4, "westus3.hcp.example.com"));
    assert_eq!(created["api"]["url"], format!("https://api.one.{base}:443"));
    assert_eq!(created["aro"]["hosted_cluster_namespace"], format!("ocm-arohcpdev-{id}"));
    assert_eq!(created["aro"]["management_cluster"], "dev-westus3-mgmt-1");
    for member in ["network", "node_drain_grace_period", "properties", "registry_config", "azure"] {
        assert_eq!(created[member], body[member], "{member} is echoed");
    }
    assert_eq!(created["autoscaler"]["max_node_provision_time"], "15m", "embedded, not linked");
    let read = fixture.get(&format!("{}/{id}", clusters())).await;
    assert!(read.headers.contains_key("etag"));
    assert_eq!(read.expect(200), created);
    let shard = fixture.get(&format!("{}/{id}/provision_shard", clusters())).await.expect(200);
    assert!(shard["href"].as_str().unwrap().starts_with("/api/aro_hcp/v1alpha1/provision_shards/"));
    assert_eq!(shard["id"], created["provision_shard_id"]);
}

#[tokio::test]
async fn a_repeated_creation_conflicts_and_the_adoption_search_finds_exactly_one() {
    let fixture = Fixture::with_shard().await;
    let mut body = bodies::cluster("one");
    body["id"] = json!("abc");
    fixture.post(&clusters(), body.clone()).await.expect(202);
    let again = fixture.post(&clusters(), body.clone()).await;
    assert!(matches!(again.status.as_u16(), 409), "{}", again.text);
    let search = format!(
        "azure.subscription_id = '{}' and azure.resource_group_name = 'rg' and azure.resource_name = 'one' and azure.tenant_id = '{}' and azure.managed_resource_group_name = 'arohcp-one'",
        bodies::SUBSCRIPTION,
        body["azure"]["tenant_id"].as_str().unwrap(),
    );
    let found = fixture.list(&clusters(), &[("search", &search)]).await.expect(200);
    assert_eq!((&found["total"], &found["items"][0]["id"]), (&json!(1), &json!("abc")));
    let shard = fixture.get(&format!("{}/abc/provision_shard", clusters())).await.expect(200);
    let shard = aro_ocm::ShardId::parse(shard["id"].as_str().unwrap()).unwrap();
    assert_eq!(fixture.shared.placement.load_of(shard).await.unwrap(), 1, "the repetition took no slot");
}

#[tokio::test]
async fn all_validation_errors_are_reported_at_once_with_their_fields() {
    let fixture = Fixture::with_shard().await;
    let mut body = bodies::cluster("one");
    body["id"] = json!("UPPER");
    body["name"] = json!("Not A Name");
    body["domain_prefix"] = json!("");
    body["version"]["id"] = json!("openshift-v4.20.7");
    body["network"]["service_cidr"] = json!("10.128.0.0/16");
    body["network"]["host_prefix"] = json!(30);
    body["api"]["cidr_block_access"]["allow"]["values"] =
        json!(["10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/24", "x"]);
    body["registry_config"]["image_digest_mirrors"] =
        json!([{"source": "a", "mirrors": ["m"]}, {"source": "a", "mirrors": []}]);
    body["autoscaler"]["max_node_provision_time"] = json!("soon");
    body["properties"] = json!({"hosted_cluster_size_override": "huge", "provision_shard_id": "x"});
    body["azure"]["managed_resource_group_name"] = json!("rg");
    body["azure"]["network_security_group_resource_id"] = json!("");
    body["azure"]["subnet_resource_id"] = json!("/subscriptions/other");
    let fields = fixture.post(&clusters(), body).await.fields(400);
    for field in [
        "api.cidr_block_access.allow.values[0]",
        "api.cidr_block_access.allow.values[1]",
        "api.cidr_block_access.allow.values[2]",
        "api.cidr_block_access.allow.values[3]",
        "autoscaler.max_node_provision_time",
        "azure.managed_resource_group_name",
        "azure.network_security_group_resource_id",
        "azure.subnet_resource_id",
        "domain_prefix",
        "id",
        "name",
        "network.host_prefix",
        "network.service_cidr",
        "properties.hosted_cluster_size_override",
        "properties.provision_shard_id",
        "registry_config.image_digest_mirrors[1].mirrors",
        "registry_config.image_digest_mirrors[1].source",
        "version.id",
    ] {
        assert!(fields.iter().any(|found| found == field), "{field} is missing in {fields:?}");
    }
    let list = fixture.get(&clusters()).await.expect(200);
    assert_eq!(list["total"], 0, "nothing was stored");
}

#[tokio::test]
async fn identities_are_complete_and_used_once() {
    let fixture = Fixture::with_shard().await;
    let mut body = bodies::cluster("one");
    let identities = &mut body["azure"]["operators_authentication"]["managed_identities"];
    let ingress = identities["control_plane_operators_managed_identities"]["ingress"].clone();
    identities["service_managed_identity"] = ingress;
    identities["control_plane_operators_managed_identities"].as_object_mut().unwrap().remove("kms");
    identities["data_plane_operators_managed_identities"]["unknown"] = json!({"resource_id": "/x"});
    let prefix = "azure.operators_authentication.managed_identities";
    let fields = fixture.post(&clusters(), body).await.fields(400);
    assert_eq!(
        fields,
        [
            format!("{prefix}.control_plane_operators_managed_identities.kms"),
            format!("{prefix}.data_plane_operators_managed_identities.unknown"),
            format!("{prefix}.service_managed_identity.resource_id"),
        ]
    );
}

#[tokio::test]
async fn resources_of_another_cluster_are_refused() {
    let fixture = Fixture::with_shard().await;
    fixture.cluster("one").await;
    let mut body = bodies::cluster("two");
    for member in ["managed_resource_group_name", "subnet_resource_id", "network_security_group_resource_id"]
    {
        body["azure"][member] = bodies::cluster("one")["azure"][member].clone();
    }
    let fields = fixture.post(&clusters(), body).await.fields(400);
    assert_eq!(
        fields,
        [
            "azure.managed_resource_group_name",
            "azure.network_security_group_resource_id",
            "azure.subnet_resource_id"
        ]
    );
}

#[tokio::test]
async fn a_dry_run_validates_everything_with_placement_and_stores_nothing() {
    let fixture = Fixture::new().await;
    let dry = format!("{}?dryRun=true", clusters());
    let refused = fixture.post(&dry, bodies::cluster("one")).await;
    assert!(refused.reason(404).contains("Unable to find shard"));
    fixture.active_shard(1).await;
    let answer = fixture.post(&dry, bodies::cluster("one")).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    let mut broken = bodies::cluster("one");
    broken["version"]["id"] = json!("openshift-v9.9.9");
    assert_eq!(fixture.post(&dry, broken).await.fields(400), ["version.id"]);
    assert_eq!(fixture.get(&clusters()).await.expect(200)["total"], 0);
}

#[tokio::test]
async fn without_a_shard_the_answer_is_404_and_without_capacity_503() {
    let config = ClustersServiceConfig { shard_capacity: 1, ..Default::default() };
    let fixture = Fixture::configured(config).await;
    let refused = fixture.post(&clusters(), bodies::cluster("one")).await;
    assert!(refused.reason(404).contains("Unable to find shard"));
    let shard = fixture.active_shard(1).await;
    fixture.cluster("one").await;
    let full = fixture.post(&clusters(), bodies::cluster("two")).await;
    assert!(full.headers.contains_key("retry-after"));
    assert!(full.reason(503).contains("Unable to find shard"));
    let mut pinned = bodies::cluster("two");
    pinned["provision_shard_id"] = json!(shard);
    fixture.post(&clusters(), pinned).await.expect(202);
    let mut nowhere = bodies::cluster("three");
    nowhere["provision_shard_id"] = json!("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee");
    assert!(fixture.post(&clusters(), nowhere).await.reason(404).contains("Unable to find shard"));
}

#[tokio::test]
async fn a_patch_reaches_a_fixpoint_at_once() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let patch = json!({
        "kind": "Cluster",
        "node_drain_grace_period": {"unit": "minutes", "value": 9},
        "api": {"cidr_block_access": {"allow": {"mode": "allow_list", "values": ["9.0.0.0/8", "8.8.8.0/24"]}}},
        "registry_config": {"image_digest_mirrors": []},
        "properties": {"hosted_cluster_size_override": "small"},
        "autoscaler": {"kind": "ClusterAutoscaler", "max_pod_grace_period": 5, "max_node_provision_time": "7.5m",
                       "pod_priority_threshold": 0, "resource_limits": {"max_nodes_total": 3}},
        "azure": {"etcd_encryption": {"data_encryption": {"customer_managed": {"kms": {"active_key": {"key_version": "v2"}}}}}},
    });
    let changed = fixture.patch(&href, patch.clone()).await.expect(202);
    assert_eq!(changed["state"], "updating");
    fixture.set_state(&href, ClusterState::Ready).await;
    let read = fixture.get(&href).await.expect(200);
    for pointer in [
        "/node_drain_grace_period",
        "/api/cidr_block_access/allow",
        "/registry_config/image_digest_mirrors",
        "/properties",
        "/autoscaler/max_pod_grace_period",
        "/autoscaler/max_node_provision_time",
        "/autoscaler/pod_priority_threshold",
        "/autoscaler/resource_limits/max_nodes_total",
    ] {
        assert_eq!(read.pointer(pointer), patch.pointer(pointer), "{pointer}");
    }
    let key = &read["azure"]["etcd_encryption"]["data_encryption"]["customer_managed"]["kms"]["active_key"];
    assert_eq!(key, &json!({"key_vault_name": "kv", "key_name": "k", "key_version": "v2"}));
    let again = fixture.patch(&href, patch).await.expect(202);
    assert_eq!(again["state"], "ready", "nothing changed, so nothing is done");
    let all = json!({"api": {"cidr_block_access": {"allow": {"mode": "allow_all"}}}});
    let open = fixture.patch(&href, all).await.expect(202);
    assert_eq!(open["api"]["cidr_block_access"]["allow"], json!({"mode": "allow_all"}));
    let key = crate::records::cluster_key(&cluster_id(&href));
    assert_eq!(fixture.shared.records.clusters.find(&key).await.unwrap().unwrap().value.generation, 3);
}

#[tokio::test]
async fn immutable_members_and_bad_values_are_refused_together() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let patch = json!({"name": "two", "fips": true, "azure": {"tenant_id": "x"}, "state": "error", "id": cluster_id(&href)});
    assert_eq!(fixture.patch(&href, patch).await.fields(400), ["azure.tenant_id", "fips", "name"]);
    let bad =
        json!({"node_drain_grace_period": {"value": -1}, "autoscaler": {"max_node_provision_time": "x"}});
    let fields = fixture.patch(&href, bad).await.fields(400);
    assert_eq!(fields, ["autoscaler.max_node_provision_time", "node_drain_grace_period.value"]);
}

#[tokio::test]
async fn a_stale_if_match_is_refused() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let etag = fixture.get(&href).await.headers["etag"].to_str().unwrap().to_owned();
    let patch = |etag: &str, size: &str| {
        let body = json!({"properties": {"hosted_cluster_size_override": size}}).to_string();
        Request::patch(&href).header("if-match", etag).body(Body::from(body)).unwrap()
    };
    fixture.send(patch(&etag, "small")).await.expect(202);
    fixture.send(patch(&etag, "large")).await.expect(412);
    fixture.send(patch("*", "large")).await.expect(202);
}

#[tokio::test]
async fn deleting_a_cluster_marks_its_pools_and_external_auths_and_repeats_harmlessly() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    for number in 0..120 {
        fixture
            .post(&format!("{href}/node_pools"), bodies::node_pool(&format!("np{number}")))
            .await
            .expect(202);
    }
    let auths = format!("{href}/external_auth_config/external_auths");
    fixture.post(&auths, bodies::external_auth("e")).await.expect(202);
    fixture.delete(&href).await.expect(202);
    fixture.delete(&href).await.expect(202);
    assert_eq!(fixture.get(&format!("{href}/status")).await.expect(200)["state"], "uninstalling");
    let leaving = [("search", "status.state.value = 'uninstalling'")];
    let leaving = fixture.list(&format!("{href}/node_pools"), &leaving).await;
    assert_eq!(leaving.expect(200)["total"], 120);
    let auth = fixture.get(&format!("{auths}/e")).await.expect(200);
    assert_eq!(auth["status"]["state"]["value"], "uninstalling");
    let refused = fixture.post(&format!("{href}/node_pools"), bodies::node_pool("late")).await;
    assert_eq!(refused.status.as_u16(), 400);
}

#[tokio::test]
async fn delete_protection_is_set_on_the_generic_root_and_refuses_deletion() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    let protection = format!("{}/delete_protection", href.replace(ARO, V1));
    assert_eq!(fixture.get(&protection).await.expect(200), json!({"enabled": false}));
    fixture.patch(&protection, json!({"enabled": true})).await.expect(200);
    assert!(fixture.delete(&href).await.reason(400).contains("delete protection"));
    fixture.patch(&protection, json!({"enabled": false})).await.expect(200);
    fixture.delete(&href).await.expect(202);
}

#[tokio::test]
async fn the_autoscaler_and_the_place_of_the_control_plane_have_addresses() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let autoscaler = format!("{href}/autoscaler");
    let read = fixture.get(&autoscaler).await.expect(200);
    assert_eq!((&read["kind"], &read["max_pod_grace_period"]), (&json!("ClusterAutoscaler"), &json!(600)));
    let changed = fixture.patch(&autoscaler, json!({"max_pod_grace_period": 1})).await.expect(200);
    assert_eq!(
        (&changed["max_pod_grace_period"], &changed["max_node_provision_time"]),
        (&json!(1), &json!("15m"))
    );
    let hypershift = fixture.get(&format!("{}/hypershift", href.replace(ARO, V1))).await.expect(200);
    let namespace = format!("ocm-arohcpdev-{}-one", cluster_id(&href));
    let expected =
        json!({"enabled": true, "management_cluster": "dev-westus3-mgmt-1", "hcp_namespace": namespace});
    assert_eq!(hypershift, expected);
}

#[tokio::test]
async fn long_names_get_a_generated_domain_prefix() {
    let fixture = Fixture::with_shard().await;
    let created = fixture.post(&clusters(), bodies::cluster("a-name-of-16-char")).await.expect(202);
    let prefix = created["domain_prefix"].as_str().unwrap();
    let classes: String = prefix.chars().map(|c| if c.is_ascii_digit() { '9' } else { 'a' }).collect();
    assert_eq!(classes, "a9a9a9a9a9a9a9a");
}

#[tokio::test]
async fn an_instance_without_work_marks_its_clusters_as_such_and_needs_no_identities() {
    let fixture = Fixture::configured(ClustersServiceConfig { noop: true, ..Default::default() }).await;
    fixture.active_shard(1).await;
    let mut body = bodies::cluster("one");
    body["azure"].as_object_mut().unwrap().remove("operators_authentication");
    let created = fixture.post(&clusters(), body).await.expect(202);
    assert_eq!(created["properties"][property::NOOP_PROVISION], "true");
    let mut sparse: Value = bodies::cluster("two");
    sparse["version"] = json!({"kind": "Version", "id": "", "channel_group": "stable"});
    let created = fixture.post(&clusters(), sparse).await.expect(202);
    assert_eq!(created["version"]["id"], "openshift-v4.20.8", "the default");
}
