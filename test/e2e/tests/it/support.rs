//! What the tests share.

use anyhow::{Context, Result};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{Names, Reply, TestClient, cluster_body, node_pool_body};
use aro_harness::Stack;

pub const GA: ApiVersion = ApiVersion::V2026_10_01;

/// `path?api-version=…`.
pub fn at(path: &str, version: ApiVersion) -> String {
    format!("{path}?api-version={version}")
}

/// A stack with one registered subscription.
pub async fn registered() -> Result<(Stack, Names)> {
    let stack = Stack::start().await?;
    let names = Names::default();
    stack.arm().register(&names.subscription).await?;
    Ok((stack, names))
}

/// Puts a cluster and expects it to be new.
pub async fn put_cluster(arm: &TestClient, names: &Names, name: &str) -> Result<Reply> {
    arm.put(&at(&names.cluster(name), GA), &cluster_body(names, name, GA)).await?.expect(201)
}

/// Puts a node pool and expects it to be new.
pub async fn put_node_pool(arm: &TestClient, names: &Names, cluster: &str, name: &str) -> Result<Reply> {
    arm.put(&at(&names.node_pool(cluster, name), GA), &node_pool_body(GA)).await?.expect(201)
}

/// A stack with one ready cluster `c1`.
pub async fn with_ready_cluster() -> Result<(Stack, Names)> {
    let (stack, names) = registered().await?;
    put_cluster(stack.arm(), &names, "c1").await?;
    stack.backend()?.complete_all().await?;
    Ok((stack, names))
}

/// The path of a link we sent, without scheme and host.
pub fn path_of(link: &str) -> Result<&str> {
    let after_scheme = link.split_once("://").context("an absolute link")?.1;
    let slash = after_scheme.find('/').context("a link with a path")?;
    Ok(&after_scheme[slash..])
}
