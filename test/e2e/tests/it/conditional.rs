//! If-Match and If-None-Match.

use anyhow::{Context, Result};
use aro_fixtures::cluster_body;
use serde_json::json;

use crate::support::{GA, at, with_ready_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn if_match_and_if_none_match_are_honoured_on_reads_and_writes() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let (arm, path) = (stack.arm(), at(&names.cluster("c1"), GA));
    let body = cluster_body(&names, "c1", GA);
    let etag = arm.get(&path).await?.header("etag").context("an etag")?.to_owned();

    arm.with("if-none-match", &etag).get(&path).await?.expect(304)?;
    assert_eq!(
        arm.with("if-none-match", "*").put(&path, &body).await?.expect(412)?.code(),
        "PreconditionFailed"
    );
    arm.with("if-match", "\"stale\"").put(&path, &body).await?.expect(412)?;
    arm.with("if-match", "\"stale\"").patch(&path, &json!({})).await?.expect(412)?;
    arm.with("if-match", "\"stale\"").delete(&path).await?.expect(412)?;
    let other = at(&names.cluster("c2"), GA);
    arm.with("if-match", "*").put(&other, &cluster_body(&names, "c2", GA)).await?.expect(412)?;

    let changed =
        arm.with("if-match", &etag).patch(&path, &json!({"tags": {"a": "b"}})).await?.expect(202)?;
    assert_ne!(changed.header("etag"), Some(etag.as_str()));
    stack.backend()?.complete_all().await?;
    arm.with("if-match", &etag).delete(&path).await?.expect(412)?;
    arm.with("if-none-match", "*").put(&other, &cluster_body(&names, "c2", GA)).await?.expect(201)?;
    stack.stop().await
}
