//! The event feed.

use std::time::Duration;

use aro_ocm::ClusterState;
use aro_runtime::Scope;
use serde_json::{Value, json};

use super::bodies;
use super::fixture::{Fixture, cluster_id};
use crate::records::{cluster_key, node_pool_key};

const EVENTS: &str = "/api/aro/v1/events";

async fn after(fixture: &Fixture, cursor: &str, timeout: &str) -> Value {
    fixture.list(EVENTS, &[("after", cursor), ("timeout", timeout)]).await.expect(200)
}

async fn head(fixture: &Fixture) -> String {
    let body = fixture.get(EVENTS).await.expect(200);
    assert_eq!((&body["kind"], &body["items"]), (&json!("EventList"), &json!([])));
    body["cursor"].as_str().unwrap().to_owned()
}

/// All events after a cursor, as kind and last segment of the address.
async fn names(fixture: &Fixture, cursor: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = cursor.to_owned();
    loop {
        let body = after(fixture, &cursor, "0").await;
        let items = body["items"].as_array().unwrap();
        if items.is_empty() {
            return names;
        }
        for item in items {
            let href = item["href"].as_str().unwrap();
            let gone = if item.get("deleted").is_some() { " deleted" } else { "" };
            names.push(format!(
                "{} {}{gone}",
                item["kind"].as_str().unwrap(),
                href.rsplit('/').next().unwrap()
            ));
        }
        cursor = body["cursor"].as_str().unwrap().to_owned();
    }
}

#[tokio::test]
async fn changes_and_deletions_come_with_the_object_as_the_api_shows_it() {
    let fixture = Fixture::with_shard().await;
    let cursor = head(&fixture).await;
    let href = fixture.cluster("one").await;
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(202);
    let body = after(&fixture, &cursor, "0").await;
    let event = body["items"].as_array().unwrap().iter().find(|one| one["kind"] == "Cluster").unwrap();
    assert_eq!((&event["href"], &event["generation"]), (&json!(href), &json!(1)));
    assert_eq!(event["object"], fixture.get(&href).await.expect(200));
    assert!(event.get("deleted").is_none());
    let cursor = body["cursor"].as_str().unwrap().to_owned();

    let records = &fixture.shared.records;
    let id = cluster_id(&href);
    let pool = records.pools.find(&node_pool_key(&id, &"np1".parse().unwrap())).await.unwrap().unwrap();
    let cluster = records.clusters.find(&cluster_key(&id)).await.unwrap().unwrap();
    let batch = records.clusters.batch(&cluster.key.partition);
    let batch = batch.with(records.pools.delete(&pool)).with(records.clusters.delete(&cluster));
    records.store().write(batch).await.unwrap();
    let id = id.to_string();
    assert_eq!(
        names(&fixture, &cursor).await,
        ["NodePool np1 deleted".to_owned(), format!("Cluster {id} deleted")]
    );
}

#[tokio::test]
async fn a_follower_behind_the_hub_reads_on_from_its_own_cursor_and_misses_nothing() {
    let fixture = Fixture::with_shard().await;
    let cursor = head(&fixture).await;
    let mut expected = Vec::new();
    for number in 0..70 {
        let href = fixture.cluster(&format!("c{number}")).await;
        expected.push(format!("Cluster {}", cluster_id(&href)));
    }
    let unhurried = names(&fixture, &cursor).await;
    let scope = Scope::root("test");
    fixture.events.start(&scope);
    assert_eq!(unhurried, expected);
    assert_eq!(names(&fixture, &cursor).await, expected, "the hub began after them");
    scope.close(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn many_followers_wait_for_the_next_event_and_all_get_it() {
    let fixture = Fixture::with_shard().await;
    let scope = Scope::root("test");
    fixture.events.start(&scope);
    let href = fixture.cluster("one").await;
    let cursor = head(&fixture).await;
    let followers = futures::future::join_all((0..10).map(|_| after(&fixture, &cursor, "30")));
    let change = async {
        tokio::task::yield_now().await;
        fixture.set_state(&href, ClusterState::Ready).await;
    };
    let (answers, ()) = tokio::join!(followers, change);
    for answer in answers {
        assert_eq!(answer["items"][0]["object"]["status"]["state"], "ready");
    }
    scope.close(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn a_wait_without_events_ends_with_the_same_place() {
    let fixture = Fixture::new().await;
    let cursor = head(&fixture).await;
    let body = after(&fixture, &cursor, "0").await;
    assert_eq!(body["items"], json!([]));
    after(&fixture, body["cursor"].as_str().unwrap(), "0").await;
    let unknown = fixture.list(EVENTS, &[("after", "not-a-cursor")]).await;
    assert!(unknown.reason(410).contains("list all objects"));
    assert_eq!(
        fixture.list(EVENTS, &[("after", &cursor), ("timeout", "x"), ("size", "y")]).await.fields(400),
        ["size", "timeout"]
    );
}

#[tokio::test]
async fn a_credential_in_the_feed_has_no_kubeconfig() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let cursor = head(&fixture).await;
    let at = href.replace("aro_hcp/v1alpha1", "clusters_mgmt/v1");
    let created = fixture.post(&format!("{at}/break_glass_credentials"), json!({})).await.expect(201);
    let id = aro_ocm::CredentialId::parse(created["id"].as_str().unwrap()).unwrap();
    let key = crate::records::credential_key(&cluster_id(&href), &id);
    let issued = fixture.shared.records.credentials.update(&key, |record| {
        record.credential.kubeconfig = Some(aro_ocm::Sensitive::new("secret kubeconfig"));
        true
    });
    issued.await.unwrap();
    let body = after(&fixture, &cursor, "0").await;
    assert_eq!(body["items"][0]["kind"], "BreakGlassCredential");
    assert!(!body.to_string().contains("secret kubeconfig"));
}
