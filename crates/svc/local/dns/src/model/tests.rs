use aro_base::ETag;
use aro_store::{DocKey, Raw};
use serde_json::json;

use super::*;

const GROUP: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

fn document(path: &str, version: u64, properties: Value) -> Document {
    created_at(path, version, 1_800_000_000, properties)
}

fn created_at(path: &str, version: u64, created: i64, properties: Value) -> Document {
    let id = if path.starts_with('/') { path.to_owned() } else { format!("{GROUP}/{path}") };
    let created = Timestamp::from_second(created).unwrap();
    let body = Resource {
        id: id.clone(),
        body: json!({"properties": properties}).as_object().unwrap().clone(),
        created,
        changed: created,
        created_by: None,
        references: std::collections::BTreeSet::new(),
        secrets: Vec::new(),
        operation: None,
        deleting: false,
    };
    Document {
        key: DocKey {
            container: aro_cloud_store::CLOUD,
            partition: aro_cloud_store::partition_of(Some("s")),
            id: aro_store::DocId::new(&id),
        },
        resource_type: String::new(),
        resource_id: id,
        etag: ETag::new("1"),
        version,
        modified: created,
        expires: None,
        body: Raw::of(&body).unwrap(),
    }
}

fn delete(path: &str, version: u64) -> Change {
    let document = document(path, version, json!({}));
    Change::Delete {
        key: document.key,
        resource_type: String::new(),
        resource_id: document.resource_id,
        version,
    }
}

fn a(address: &str) -> Value {
    json!({"TTL": 60, "ARecords": [{"ipv4Address": address}]})
}

fn first(zones: &Zones, host: &str) -> Option<String> {
    zones.lookup(host).map(|found| found[0].to_string())
}

fn model() -> Model {
    Model::new(1 << 20)
}

#[test]
fn a_record_set_counts_once_its_zone_exists_whichever_comes_first() {
    let mut model = model();
    assert_eq!(model.upsert(document("dnsZones/example.com/A/www", 1, a("192.0.2.1"))), Applied::Yes);
    assert_eq!(first(&model.zones().unwrap(), "www.example.com"), None);
    model.upsert(document("dnsZones/Example.com", 1, json!({"nameServers": ["ns1.example.net."]})));
    assert_eq!(first(&model.zones().unwrap(), "www.example.com").as_deref(), Some("192.0.2.1"));
    assert!(model.zones().is_none(), "nothing changed since");
}

#[test]
fn changes_replace_and_deletions_remove_and_old_deliveries_do_nothing() {
    let mut model = model();
    model.upsert(document("dnsZones/example.com", 1, json!({})));
    model.upsert(document("dnsZones/example.com/A/www", 3, a("192.0.2.3")));
    assert_eq!(model.upsert(document("dnsZones/example.com/A/WWW", 2, a("192.0.2.2"))), Applied::Ignored);
    assert_eq!(model.apply(delete("dnsZones/example.com/A/www", 2)), Applied::Ignored);
    assert_eq!(first(&model.zones().unwrap(), "www.example.com").as_deref(), Some("192.0.2.3"));
    assert_eq!(model.apply(delete("dnsZones/example.com/a/www", 4)), Applied::Yes);
    assert_eq!(first(&model.zones().unwrap(), "www.example.com"), None);
    model.apply(delete("dnsZones/example.com", 5));
    assert!(model.zones().unwrap().is_empty());
    assert_eq!((model.bytes(), model.record_sets()), (0, 0), "everything is given back");
}

#[test]
fn an_alias_follows_its_public_address() {
    let mut model = model();
    let ip = format!("{GROUP}/publicIPAddresses/router");
    model.upsert(document("dnsZones/example.com", 1, json!({})));
    model.upsert(document("dnsZones/example.com/A/api", 1, json!({"targetResource": {"id": ip}})));
    assert_eq!(first(&model.zones().unwrap(), "api.example.com"), None);
    for (version, address) in [(1, "192.0.2.1"), (2, "192.0.2.2")] {
        model.upsert(document("publicIPAddresses/router", version, json!({"ipAddress": address})));
        assert_eq!(first(&model.zones().unwrap(), "api.example.com").as_deref(), Some(address));
    }
    model.apply(delete("publicIPAddresses/router", 3));
    assert_eq!(first(&model.zones().unwrap(), "api.example.com"), None);
}

#[test]
fn private_zones_are_not_served() {
    let mut model = model();
    model.upsert(document("dnsZones/example.com", 1, json!({"zoneType": "Private"})));
    model.upsert(document("dnsZones/example.com/A/www", 1, a("192.0.2.1")));
    assert!(model.zones().unwrap().is_empty());
}

#[test]
fn of_two_zones_with_one_name_the_older_one_is_served() {
    let mut model = model();
    for (group, created, address) in [("g1", 200, "192.0.2.1"), ("g2", 100, "192.0.2.2")] {
        let zone = format!(
            "/subscriptions/s/resourceGroups/{group}/providers/Microsoft.Network/dnsZones/example.com"
        );
        model.upsert(created_at(&zone, 1, created, json!({})));
        model.upsert(created_at(&format!("{zone}/A/www"), 1, created, a(address)));
    }
    assert_eq!(first(&model.zones().unwrap(), "www.example.com").as_deref(), Some("192.0.2.2"));
}

#[test]
fn documents_beyond_the_budget_are_not_served() {
    let zone = document("dnsZones/example.com", 1, json!({}));
    let set = document("dnsZones/example.com/A/www", 1, a("192.0.2.1"));
    let room = zone.body.get().len() + set.body.get().len() + 2 * OVERHEAD;
    let mut model = Model::new(room);
    assert_eq!((model.upsert(zone), model.upsert(set)), (Applied::Yes, Applied::Yes));
    assert_eq!(model.upsert(document("dnsZones/example.com/A/two", 1, a("192.0.2.2"))), Applied::OverBudget);
    let zones = model.zones().unwrap();
    assert!(zones.lookup("www.example.com").is_some() && zones.lookup("two.example.com").is_none());
    model.apply(delete("dnsZones/example.com/A/www", 2));
    assert_eq!(model.upsert(document("dnsZones/example.com/A/two", 2, a("192.0.2.2"))), Applied::Yes);
}

#[test]
fn an_unreadable_document_leaves_the_earlier_version_in_use() {
    let mut model = model();
    model.upsert(document("dnsZones/example.com", 1, json!({})));
    model.upsert(document("dnsZones/example.com/A/www", 1, a("192.0.2.1")));
    let broken = document("dnsZones/example.com/A/www", 2, a("192.0.2.2"));
    let broken = Document { body: Raw::parse("[]".to_owned()).unwrap(), ..broken };
    assert_eq!(model.upsert(broken), Applied::Unreadable);
    assert_eq!(first(&model.zones().unwrap(), "www.example.com").as_deref(), Some("192.0.2.1"));
}

#[test]
fn other_resources_are_ignored() {
    let mut model = model();
    for path in [
        "virtualNetworks/v",
        "dnsZones/example.com/providers/x",
        "dnsZones/example.com/XYZ/www",
        "/subscriptions/s/resourceGroups/g",
        "/",
    ] {
        assert_eq!(model.upsert(document(path, 1, json!({}))), Applied::Ignored, "{path}");
    }
    assert!(model.zones().is_none());
}
