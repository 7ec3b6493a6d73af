//! `kill -9` of the local cloud loses nothing that was acknowledged, and deletions under way are completed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_arm::ResourceId;
use aro_azure_local::{AdminClient, Fault, Rule};
use aro_cloud::ArmClient;
use aro_cloud::resources::{GroupSpec, NsgSpec, Tags};
use aro_cloud_e2e::client_of;
use aro_fixtures::wait;
use aro_harness::Process;
use tokio::task::JoinSet;

/// How many writes are acknowledged before the kill.
const BEFORE_THE_KILL: usize = 60;
const WRITERS: usize = 8;
/// How many resources the group has whose deletion is interrupted.
const IN_GROUP: usize = 80;

/// A client of the cloud as it runs now, and the customer's subscription.
fn client(process: &Process) -> Result<(ArmClient, String)> {
    let address = process.addr("azure-local").context("the cloud listens")?;
    let (cloud, credential, account) = client_of(&process.data_dir().join("azure-local"), address)?;
    // A killed process is not waited for.
    let patience = Duration::from_secs(5);
    let arm = cloud.arm(credential).with_deadline(patience).with_operation_deadline(patience);
    Ok((arm, account.subscription_id.to_string()))
}

async fn make_group(arm: &ArmClient, subscription: &str, name: &str) -> Result<()> {
    let spec = GroupSpec { location: "westus3".to_owned(), managed_by: None, tags: Tags::new() };
    arm.ensure_resource_group(subscription, name, &spec).await?;
    Ok(())
}

fn nsg(subscription: &str, group: &str, name: &str) -> ResourceId {
    ResourceId::in_group(subscription, group, "Microsoft.Network", &[("networkSecurityGroups", name)])
}

fn spec() -> NsgSpec {
    NsgSpec { location: "westus3".to_owned(), rules: Vec::new(), tags: Tags::new() }
}

/// Writes from several clients at once and kills the process while they write; returns what was acknowledged.
async fn write_until_killed(process: &mut Process, round: usize) -> Result<Vec<ResourceId>> {
    let (count, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (arm, subscription) = client(process)?;
        let (count, stopped) = (count.clone(), stopped.clone());
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            for index in 0.. {
                let id = nsg(&subscription, "storm", &format!("r{round}w{writer}n{index}"));
                match arm.ensure_nsg(&id, &spec()).await {
                    Ok(_) => {
                        acknowledged.push(id);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) if stopped.load(Ordering::Relaxed) => break,
                    Err(error) => return Err(anyhow::Error::from(error)),
                }
            }
            Ok(acknowledged)
        });
    }
    wait::until("the storm to be in full swing", || async {
        Ok((count.load(Ordering::Relaxed) >= BEFORE_THE_KILL).then_some(()))
    })
    .await?;
    stopped.store(true, Ordering::Relaxed);
    process.kill()?;
    let mut acknowledged = Vec::new();
    while let Some(writer) = writers.join_next().await {
        acknowledged.extend(writer??);
    }
    Ok(acknowledged)
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_dash_nine_loses_no_acknowledged_write() -> Result<()> {
    let mut process = Process::start_role("azure-local", &[]).await?;
    let (arm, subscription) = client(&process)?;
    make_group(&arm, &subscription, "storm").await?;
    let mut acknowledged = Vec::new();
    for round in 0..2 {
        let written = write_until_killed(&mut process, round).await?;
        ensure!(written.len() >= BEFORE_THE_KILL, "{} writes", written.len());
        acknowledged.extend(written);
        process.start_again().await?;
        let (arm, subscription) = client(&process)?;
        let listed = arm.list_resources(&subscription, "storm").await?;
        let listed: std::collections::HashSet<String> =
            listed.iter().map(|found| found.id.to_lower()).collect();
        for id in &acknowledged {
            ensure!(listed.contains(&id.to_lower()), "{id} is lost");
        }
    }
    // What was written around the kill is whole: everything can be deleted.
    let (arm, subscription) = client(&process)?;
    arm.delete_resource_group(&subscription, "storm").await?;
    ensure!(process.interrupt()?.success(), "a clean stop");
    Ok(())
}

async fn fill(process: &Process) -> Result<()> {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (arm, subscription) = client(process)?;
        writers.spawn(async move {
            for index in 0..IN_GROUP / WRITERS {
                let id = nsg(&subscription, "full", &format!("w{writer}n{index}"));
                arm.ensure_nsg(&id, &spec()).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(())
}

/// How many resources the running process deleted, and whether the group is one of them.
async fn deleted(process: &Process) -> Result<(usize, bool)> {
    let admin = AdminClient::open(&process.data_dir().join("azure-local"))?;
    let (mut count, mut group, mut cursor) = (0, false, None);
    loop {
        let page = admin.mutations(cursor).await?;
        if page.entries.is_empty() {
            return Ok((count, group));
        }
        cursor = Some((page.instance, page.cursor));
        let gone = page.entries.iter().filter(|entry| entry.outcome == "deleted");
        for entry in gone {
            count += 1;
            group |= entry.resource_id.ends_with("/resourceGroups/full");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_deletion_under_way_resumes_after_kill_dash_nine() -> Result<()> {
    let mut process = Process::start_role("azure-local", &[]).await?;
    let (arm, subscription) = client(&process)?;
    make_group(&arm, &subscription, "full").await?;
    fill(&process).await?;
    // Held between its acceptance and its first step, so that the kill comes in between.
    let admin = AdminClient::open(&process.data_dir().join("azure-local"))?;
    admin.add_fault(&Rule { method: Some("DELETE".to_owned()), ..Rule::of(Fault::StuckOperation) }).await?;
    let impatient = arm.with_operation_deadline(Duration::from_millis(1));
    assert!(impatient.delete_resource_group(&subscription, "full").await.is_err());
    assert_eq!(deleted(&process).await?, (0, false));
    process.kill()?;
    process.start_again().await?;
    let resumed = wait::until("the deletion to be completed", || async {
        let (count, group) = deleted(&process).await?;
        Ok(group.then_some(count))
    })
    .await?;
    assert_eq!(resumed, IN_GROUP + 1, "the content and the group");
    let (arm, subscription) = client(&process)?;
    ensure!(arm.find_resource_group(&subscription, "full").await?.is_none());
    make_group(&arm, &subscription, "full").await?;
    ensure!(arm.list_resources(&subscription, "full").await?.is_empty(), "nothing is left behind");
    ensure!(process.interrupt()?.success(), "a clean stop");
    Ok(())
}
