//! Lists: pages, searches, orders, selections.

use serde_json::{Value, json};

use super::bodies;
use super::fixture::{ARO, Fixture, V1};

fn ids(list: &Value) -> Vec<String> {
    list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_empty_list_has_page_zero_and_no_items() {
    let fixture = Fixture::new().await;
    let list = fixture.get(&format!("{ARO}/clusters")).await.expect(200);
    assert_eq!(list, json!({"kind": "ClusterList", "page": 0, "size": 0, "total": 0, "items": []}));
}

#[tokio::test]
async fn pages_of_250_clusters_are_stable_and_complete() {
    let fixture = Fixture::new().await;
    let shard = fixture.active_shard(1).await;
    for number in 0..250 {
        let mut body = bodies::cluster(&format!("c{number}"));
        body["provision_shard_id"] = json!(shard);
        fixture.post(&format!("{ARO}/clusters"), body).await.expect(202);
    }
    let mut seen = Vec::new();
    for (page, expected) in [("1", 100), ("2", 100), ("3", 50), ("4", 0)] {
        let list = fixture.list(&format!("{ARO}/clusters"), &[("page", page)]).await.expect(200);
        assert_eq!((&list["size"], &list["total"]), (&json!(expected), &json!(250)), "page {page}");
        seen.extend(ids(&list));
    }
    let mut unique = seen.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!((seen.len(), unique.len()), (250, 250));
    let all = fixture.list(&format!("{V1}/clusters"), &[("size", "-1")]).await.expect(200);
    assert_eq!(ids(&all), seen, "the same order in one page, on the other root");
    let href = all["items"][0]["href"].as_str().unwrap();
    assert!(href.starts_with(V1));
}

#[tokio::test]
async fn searches_orders_and_selections_work_together() {
    let fixture = Fixture::with_shard().await;
    for name in ["one", "two", "three"] {
        fixture.cluster(name).await;
    }
    let names = async |query: &[(&str, &str)]| {
        let list = fixture.list(&format!("{ARO}/clusters"), query).await.expect(200);
        let items = list["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["name"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]).await, ["one", "two", "three"]);
    assert_eq!(names(&[("order", "name")]).await, ["one", "three", "two"]);
    assert_eq!(names(&[("order", "creation_timestamp desc")]).await, ["three", "two", "one"]);
    for (search, expected) in [
        ("name = 'two'", vec!["two"]),
        ("name = 'TWO'", vec![]),
        ("azure.resource_name = 'three'", vec!["three"]),
        ("azure.managed_resource_group_name = 'arohcp-one'", vec!["one"]),
        ("domain_prefix in ('one', 'two')", vec!["one", "two"]),
        ("properties.hosted_cluster_single_replica = 'true' and not name like 't%'", vec!["one"]),
        ("state = 'validating' and hypershift.enabled = 't'", vec!["one", "two", "three"]),
        ("azure.subscription_id = 'x' and azure.resource_group_name = 'rg'", vec![]),
    ] {
        assert_eq!(names(&[("search", search)]).await, expected, "{search}");
    }
    let tenant = "azure.tenant_id = '64dc69e4-d083-49fc-9569-ebece1dd1408'";
    assert_eq!(names(&[("search", tenant), ("order", "name desc"), ("size", "2")]).await, ["two", "three"]);
    let list = fixture
        .list(&format!("{ARO}/clusters"), &[("fields", "id,azure.resource_name"), ("size", "1")])
        .await;
    let item = list.expect(200)["items"][0].clone();
    let mut members: Vec<&String> = item.as_object().unwrap().keys().collect();
    members.sort_unstable();
    assert_eq!(members, ["azure", "href", "id", "kind"]);
    assert_eq!(item["azure"], json!({"resource_name": "one"}));
}

#[tokio::test]
async fn versions_are_listed_searched_and_found_without_their_prefix() {
    let fixture = Fixture::new().await;
    let stable = [("search", "channel_group = 'stable' and enabled = 't'"), ("size", "1000")];
    let list = fixture.list(&format!("{ARO}/versions"), &stable).await.expect(200);
    assert_eq!(list["total"], 119 - 42);
    let default = fixture.list(&format!("{ARO}/versions"), &[("search", "default = true")]).await.expect(200);
    assert_eq!(ids(&default), ["openshift-v4.20.8"]);
    let version = fixture.get(&format!("{V1}/versions/4.20.8")).await.expect(200);
    assert_eq!((&version["id"], &version["raw_id"]), (&json!("openshift-v4.20.8"), &json!("4.20.8")));
    assert!(version["available_upgrades"].as_array().unwrap().contains(&json!("4.21.0")));
    fixture.get(&format!("{ARO}/versions/openshift-v4.20.7")).await.expect(404);
}

#[tokio::test]
async fn identity_requirements_are_filtered_and_bad_filters_refused() {
    let fixture = Fixture::new().await;
    let path = format!("{ARO}/managed_identities_requirements");
    let all = fixture.get(&path).await.expect(200);
    let count =
        |body: &Value, plane: &str| body[format!("{plane}_operators_identities")].as_array().unwrap().len();
    assert_eq!((count(&all, "control_plane"), count(&all, "data_plane")), (9, 3));
    let disk = &all["data_plane_operators_identities"][0];
    assert_eq!(disk["service_accounts"].as_array().unwrap().len(), 2);
    let optional = fixture.get(&format!("{path}?required=on_enablement&version=4.20")).await.expect(200);
    assert_eq!((count(&optional, "control_plane"), count(&optional, "data_plane")), (1, 0));
    let old = fixture.get(&format!("{path}?version=4.18")).await.expect(200);
    assert_eq!(count(&old, "control_plane"), 0);
    assert_eq!(
        fixture.get(&format!("{path}?required=never&version=x")).await.fields(400),
        ["required", "version"]
    );
}
