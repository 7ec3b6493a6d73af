//! Node pools and external auths.

use anyhow::Result;
use aro_fixtures::{external_auth_body, node_pool_body};

use crate::support::{Fixture, GA, at};

#[tokio::test]
async fn a_child_needs_its_cluster() -> Result<()> {
    let fixture = Fixture::start().await?;
    let reply = fixture.arm.put(&at(&fixture.names.node_pool("none", "np1")), &node_pool_body(GA)).await?;
    assert_eq!(reply.expect(404)?.code(), "ResourceNotFound");
    let list = fixture.names.node_pool("none", "x").replace("/x", "");
    fixture.arm.get(&at(&list)).await?.expect(404)?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_keeps_its_last_node_pool() -> Result<()> {
    let fixture = Fixture::with_cluster("c1").await?;
    fixture.put_node_pool("c1", "np1").await?;
    fixture.put_node_pool("c1", "np2").await?;
    fixture.backend.complete_all().await?;
    fixture.arm.delete(&at(&fixture.names.node_pool("c1", "np1"))).await?.expect(202)?;
    fixture.arm.delete(&at(&fixture.names.node_pool("c1", "np2"))).await?.expect(400)?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_has_one_external_auth() -> Result<()> {
    let fixture = Fixture::with_cluster("c1").await?;
    let path = |name: &str| at(&fixture.names.external_auth("c1", name));
    fixture.arm.put(&path("first"), &external_auth_body(GA)).await?.expect(201)?;
    let refused = fixture.arm.put(&path("second"), &external_auth_body(GA)).await?.expect(400)?;
    assert!(refused.json()["error"]["message"].to_string().contains("first"), "{:?}", refused.json());
    Ok(())
}
