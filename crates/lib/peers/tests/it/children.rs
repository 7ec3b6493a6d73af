use aro_ocm::patch::{EXTERNAL_AUTH, merge, merge_node_pool};
use aro_ocm::wire::Described as _;
use aro_ocm::{ExternalAuth, NodePool, shape};
use aro_peers::translate::{differences, external_auth as auths, node_pool as pools};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{cluster, external_auth, node_pool, release};

fn stored<T: DeserializeOwned + serde::Serialize>(sent: &Value) -> Value {
    let read: T = serde_json::from_value(sent.clone()).unwrap();
    serde_json::to_value(read).unwrap()
}

#[test]
fn a_node_pool_has_every_member_of_its_resource() {
    let disk = "/subscriptions/AAAAAAAA-0000-0000-0000-000000000001/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d";
    let pool = node_pool(|body| body["properties"]["platform"]["osDisk"]["encryptionSetId"] = json!(disk));
    let sent = pools::create_body(&pool, &cluster(|_| {}), &release());
    assert_eq!(shape::problems(NodePool::SHAPE, &sent), []);
    assert_eq!(stored::<NodePool>(&sent), sent);
    assert_eq!(sent["id"], "np-1");
    assert_eq!(sent["version"]["id"], "openshift-v4.22.11", "the resource's own release");
    assert_eq!(
        sent["azure_node_pool"]["os_disk"],
        json!({"size_gibibytes": 64, "storage_account_type": "Premium_LRS", "persistence": "persistent",
               "sse_encryption_set_resource_id": disk})
    );
    assert!(sent["subnet"].as_str().unwrap().ends_with("/subnets/nodes"), "the cluster's subnet");
    assert_eq!(sent["replicas"], 2);
}

#[test]
fn each_change_of_a_node_pool_converges_also_where_something_is_cleared() {
    type Change = fn(&mut Value);
    let full: Change = |body| {
        body["properties"]["labels"] = json!([{"key": "a", "value": "b"}]);
        body["properties"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
        body["properties"]["nodeDrainTimeoutMinutes"] = json!(10);
    };
    let cluster = cluster(|_| {});
    let before = stored::<NodePool>(&pools::create_body(&node_pool(full), &cluster, &release()));
    let cases: [(&str, Change); 6] = [
        ("taints", |body| body["properties"]["taints"] = json!([])),
        ("labels", |body| body["properties"]["labels"] = json!([])),
        ("labels", |body| body["properties"]["labels"] = json!([{"key": "a"}])),
        ("replicas", |body| body["properties"]["replicas"] = json!(7)),
        ("replicas", |body| {
            body["properties"]["replicas"] = json!(0);
            body["properties"]["autoScaling"] = json!({"min": 1, "max": 5});
        }),
        ("node_drain_grace_period", |body| {
            body["properties"].as_object_mut().unwrap().remove("nodeDrainTimeoutMinutes");
        }),
    ];
    for (name, change) in cases {
        let wanted = node_pool(|body| {
            full(body);
            change(body);
        });
        let update = pools::update_body(&wanted, &cluster);
        assert_eq!(differences(&pools::canonical(&update), &pools::canonical(&before)), [name]);
        let after =
            merge_node_pool(&before, &update).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        let after = stored::<NodePool>(&after);
        assert_eq!(
            differences(&pools::canonical(&update), &pools::canonical(&after)),
            Vec::<&str>::new(),
            "{name}"
        );
    }
}

#[test]
fn an_external_auth_is_created_and_changed_with_all_its_members() {
    let auth = external_auth(|_| {});
    let sent = auths::create_body(&auth);
    assert_eq!(shape::problems(ExternalAuth::SHAPE, &sent), []);
    assert_eq!(stored::<ExternalAuth>(&sent), sent);
    assert_eq!(sent["id"], "entra");
    assert_eq!(
        sent["claim"]["mappings"]["username"],
        json!({"claim": "email", "prefix": "", "prefix_policy": ""})
    );

    let without_groups = external_auth(|body| {
        body["properties"]["claim"]["mappings"].as_object_mut().unwrap().remove("groups");
    });
    let update = auths::update_body(&without_groups);
    assert_eq!(differences(&auths::canonical(&update), &auths::canonical(&sent)), ["claim.mappings.groups"]);
    let after = merge(EXTERNAL_AUTH, &sent, &update).unwrap();
    assert_eq!(differences(&auths::canonical(&update), &auths::canonical(&after)), Vec::<&str>::new());
}
