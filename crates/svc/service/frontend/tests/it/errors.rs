//! What is refused, and what a failing store does.

use anyhow::Result;
use aro_arm::ResourceId;
use aro_arm::hcp::CLUSTER_TYPE;
use aro_fixtures::cluster_body;
use aro_rp_store::{RESOURCES, key_of};
use aro_store::fault::{Call, Fault};
use aro_store::{Collection, Kind, UnreadableDocuments};
use serde_json::{Value, json};

use crate::support::{Fixture, GA, at};

#[tokio::test]
async fn all_problems_of_a_body_are_reported_at_once_and_nothing_is_stored() -> Result<()> {
    let fixture = Fixture::start().await?;
    let path = at(&fixture.names.cluster("c1"));
    let mut body = cluster_body(&fixture.names, "c1", GA);
    body["properties"]["network"]["hostPrefix"] = json!(5);
    body["properties"]["api"]["visibility"] = json!("Nowhere");
    let refused = fixture.arm.put(&path, &body).await?.expect(400)?;
    assert_eq!(refused.code(), "MultipleErrorsOccurred");
    assert!(refused.json()["error"]["details"].as_array().is_some_and(|details| details.len() >= 2));
    fixture.arm.get(&path).await?.expect(404)?;
    Ok(())
}

#[tokio::test]
async fn what_one_cluster_uses_another_cannot_claim() -> Result<()> {
    let fixture = Fixture::with_cluster("c1").await?;
    let mut body = cluster_body(&fixture.names, "c2", GA);
    body["properties"]["platform"]["managedResourceGroup"] = json!("MRG-c1");
    let refused = fixture.arm.put(&at(&fixture.names.cluster("c2")), &body).await?.expect(400)?;
    assert_eq!(refused.json()["error"]["target"], "properties.platform.managedResourceGroup");
    Ok(())
}

#[tokio::test]
async fn the_state_of_a_cluster_decides_about_writes() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.put_cluster("c1").await?;
    let path = at(&fixture.names.cluster("c1"));
    let patch = json!({"tags": {"team": "red"}});
    assert_eq!(fixture.arm.patch(&path, &patch).await?.expect(409)?.code(), "Conflict");
    fixture.backend.complete_all().await?;
    fixture.arm.with("if-match", "\"stale\"").patch(&path, &patch).await?.expect(412)?;
    fixture.arm.delete(&path).await?.expect(202)?;
    assert_eq!(fixture.arm.delete(&path).await?.expect(409)?.code(), "Conflict");
    Ok(())
}

#[tokio::test]
async fn an_unreadable_cluster_does_not_hide_its_neighbours() -> Result<()> {
    let fixture = Fixture::start().await?;
    for name in ["c1", "c2", "c3"] {
        fixture.put_cluster(name).await?;
    }
    let documents: Collection<Value> = Collection::new(
        fixture.store.clone(),
        RESOURCES,
        Kind::new(CLUSTER_TYPE),
        UnreadableDocuments::default(),
    );
    let key = key_of(&ResourceId::parse(&fixture.names.cluster("c2"))?);
    let broken = documents.update(&key, |body| {
        *body = json!({"id": 5});
        true
    });
    assert!(broken.await?.is_some());

    let list = fixture.names.cluster("x").replace("/x", "");
    let listed = fixture.arm.get(&at(&list)).await?.expect(200)?.json();
    let names: Vec<&str> =
        listed["value"].as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect();
    assert_eq!(names, ["c1", "c3"]);
    let reply = fixture.arm.get(&at(&fixture.names.cluster("c2"))).await?.expect(500)?;
    assert_eq!(reply.json()["error"]["message"], "Internal server error.");
    let text = fixture.metrics.encode();
    assert!(text.contains("aro_store_unreadable_documents_total{"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_a_503_and_a_lost_reply_is_not() -> Result<()> {
    let fixture = Fixture::start().await?;
    let path = at(&fixture.names.cluster("c1"));
    fixture.faults.script(Call::Write, [Fault::FailBefore]);
    let refused = fixture.arm.put(&path, &cluster_body(&fixture.names, "c1", GA)).await?.expect(503)?;
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("ServiceUnavailable", Some("59")));
    fixture.arm.get(&path).await?.expect(404)?;
    fixture.faults.script(Call::Write, [Fault::LostReply]);
    fixture.put_cluster("c1").await?;
    fixture.arm.get(&path).await?.expect(200)?;
    Ok(())
}
