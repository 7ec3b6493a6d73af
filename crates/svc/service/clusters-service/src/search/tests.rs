use aro_store_conformance::holds_text;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn body() -> String {
    json!({
        "id": "c1", "generation": 3,
        "cluster": {
            "id": "c1", "name": "one", "state": "ready", "fips": false, "creation_timestamp": "2026-01-02T03:04:05.000000Z",
            "region": {"id": "westus3"}, "hypershift": {"enabled": true}, "network": {"host_prefix": 23},
            "properties": {"a.b": "x", "owner": "it's"},
            "azure": {"subscription_id": "s", "resource_group_name": "g", "operators_authentication": {"managed_identities": {
                "control_plane_operators_managed_identities": {"ingress": {"resource_id": "/i"}}}}},
        },
    })
    .to_string()
}

fn finds(text: &str) -> bool {
    let condition = condition(Table::Clusters, text).unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
    holds_text(&condition.expect("not blank"), &body())
}

#[test]
fn every_attribute_is_searched_by_its_name_in_the_api() {
    for (text, expected) in [
        ("azure.subscription_id = 's' and azure.resource_group_name='g'", true),
        ("azure.subscription_id = 'S'", false),
        ("region.id = 'westus3' and hypershift.enabled = 't'", true),
        ("hypershift.enabled = false or fips = 'f'", true),
        ("network.host_prefix >= 23 and network.host_prefix < '24'", true),
        ("creation_timestamp > '2026-01-02' and creation_timestamp <= '2026-01-02T04:04:05+01:00'", true),
        ("properties.a.b = 'x' and properties.owner = 'it''s'", true),
        ("properties.none is null and name not like 'x%' and name ilike 'O_E'", true),
        ("state in ('ready', 'error') and state not in ('updating')", true),
        (
            "azure.operators_authentication.managed_identities.control_plane_operators_managed_identities.ingress.resource_id = '/i'",
            true,
        ),
        ("provision_shard_id is not null", false),
        ("not (name = 'two')", true),
    ] {
        assert_eq!(finds(text), expected, "{text}");
    }
}

#[test]
fn unknown_and_hidden_attributes_and_wrong_values_are_refused() {
    for text in [
        "generation = 3",
        "cluster.name = 'x'",
        "aro.hcp_namespace = 'x'",
        "azure = 'x'",
        "properties = 'x'",
        "ingresses.items = 'x'",
        "network.host_prefix = 'x'",
        "fips = 'maybe'",
        "creation_timestamp = 'soon'",
        "fips like 't%'",
        "name = ",
        "name.first = 'x'",
        "id = '1'; drop table x",
    ] {
        let problem = condition(Table::Clusters, text).unwrap_err();
        assert_eq!((problem.code, problem.field.as_str()), (Code::InvalidValue, "search"), "{text}");
    }
    assert!(condition(Table::Credentials, "kubeconfig like '%key%'").is_err(), "secrets cannot be probed");
    assert!(condition(Table::Credentials, "username = 'x' and status = 'issued'").is_ok());
    assert!(
        condition(Table::NodePools, "status.state.value = 'ready' and azure_node_pool.vm_size = 'x'").is_ok()
    );
    assert!(condition(Table::Shards, "maestro_config.consumer_name = 'c' and status = 'active'").is_ok());
    assert!(order(Table::Clusters, "creation_timestamp desc, azure.resource_name").is_ok());
    assert!(order(Table::Clusters, "nothing").is_err() && order(Table::Clusters, "azure").is_err());
}

proptest! {
    #[test]
    fn no_words_are_a_panic(words in prop::collection::vec(prop::sample::select(vec![
        "id", "azure.tenant_id", "properties.a-b.c", "network.host_prefix", "fips", "creation_timestamp", "aro", "'x'", "5",
        "=", "<>", "(", ")", ",", "and", "or", "not", "in", "like", "between", "is", "null", "'2026-01-01'", "true", ".",
    ]), 0..14)) {
        let text = words.join(" ");
        for table in [Table::Clusters, Table::NodePools, Table::Versions] {
            let _ = condition(table, &text);
            let _ = order(table, &text);
        }
    }
}
