//! `aro cloud`, against a cloud that another process runs.

use anyhow::{Context as _, Result, ensure};
use aro_cloud::resources::{GroupSpec, Tags};
use aro_cloud_e2e::client_of;
use aro_harness::Process;
use serde_json::Value;

fn run(process: &Process, command: &str) -> Result<String> {
    let output = process.second(command)?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

fn refused(process: &Process, command: &str) -> Result<String> {
    let output = process.second(command)?;
    ensure!(!output.status.success(), "{command} succeeds");
    Ok(String::from_utf8(output.stderr)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_adds_faults_and_shows_what_happened() -> Result<()> {
    let mut process = Process::start_role("azure-local", &[]).await?;
    let address = process.addr("azure-local").context("the cloud listens")?;
    let (cloud, credential, account) = client_of(&process.data_dir().join("azure-local"), address)?;
    let arm = cloud.arm(credential);

    let added = run(&process, "cloud faults add throttle --delay 1ms --count 2 --operation write")?;
    assert_eq!(added, "rule 1 added\n");
    let reason = refused(&process, "cloud faults add latency")?;
    assert!(reason.contains("delay must be set"), "{reason}");
    let spec = GroupSpec { location: "westus3".to_owned(), managed_by: None, tags: Tags::new() };
    let group = arm.ensure_resource_group(&account.subscription_id.to_string(), "demo", &spec).await?;

    let table = run(&process, "cloud faults list")?;
    let row: Vec<&str> = table.lines().nth(1).context("a rule")?.split_whitespace().collect();
    assert_eq!(row.get(..4), Some(&["1", "throttle", "3", "2"][..]), "{table}");
    let listed: Value = serde_json::from_str(&run(&process, "cloud faults list -o json")?)?;
    assert_eq!(listed["rules"][0]["rule"]["count"], 2, "{listed}");
    assert_eq!(run(&process, "cloud faults clear 1")?, "rule 1 cleared\n");
    assert!(refused(&process, "cloud faults clear 1")?.contains("no such rule"));
    assert_eq!(run(&process, "cloud faults clear")?, "0 rules cleared\n");

    let mutations = run(&process, "cloud mutations -o json")?;
    let logged: Vec<Value> = mutations.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let of_group = |entry: &&Value| entry["resourceId"] == group.id.as_str();
    let created: Vec<&Value> = logged.iter().filter(of_group).collect();
    assert_eq!(created.len(), 1, "{mutations}");
    assert_eq!(created[0]["outcome"], "created");

    let listed = run(&process, "cloud ls --group demo")?;
    assert!(listed.contains("Microsoft.Resources/resourceGroups"), "{listed}");
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let shown: Value = serde_json::from_str(&run(&process, &format!("cloud show {}", group.id))?)?;
    assert_eq!(shown["location"], "westus3");
    assert!(refused(&process, "cloud show /subscriptions/none")?.contains("no such resource"));

    process.kill()?;
    let reason = refused(&process, "cloud ls")?;
    assert!(reason.contains("no region runs in") && reason.contains("aro up"), "{reason}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_cloud_is_reported_as_such() -> Result<()> {
    let mut process = Process::start_role("azure-local", &[]).await?;
    ensure!(process.interrupt()?.success(), "a clean stop");
    let reason = refused(&process, "cloud mutations")?;
    assert!(reason.contains("no region runs in"), "{reason}");
    Ok(())
}
