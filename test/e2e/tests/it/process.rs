//! The binary itself: start, stop, restart, refuse.

use anyhow::Result;
use aro_fixtures::Names;
use aro_harness::{Process, StoreChoice};

use crate::support::{GA, at, put_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn it_stops_cleanly_when_interrupted_and_goes_on_where_it_was() -> Result<()> {
    let mut process = Process::start(StoreChoice::Embedded).await?;
    let names = Names::default();
    process.arm()?.register(&names.subscription).await?;
    put_cluster(&process.arm()?, &names, "c1").await?;
    assert!(process.interrupt()?.success());
    process.start_again().await?;
    let shown = process.arm()?.get(&at(&names.cluster("c1"), GA)).await?.expect(200)?.json();
    assert_eq!(shown["properties"]["provisioningState"], "Accepted");
    assert!(process.interrupt()?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_data_is_refused_by_name() -> Result<()> {
    let process = Process::start(StoreChoice::Embedded).await?;
    let output = process.second("up")?;
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&process.pid()?.to_string()), "it names who holds the data: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_answer() -> Result<()> {
    let process = Process::start(StoreChoice::Embedded).await?;
    let arm = process.arm()?;
    arm.get("/healthz").await?.expect(200)?;
    let location = arm.get("/location").await?.expect(200)?;
    assert_eq!(&location.body[..], b"uksouth");
    arm.register(&Names::default().subscription).await?;
    arm.get("/nothing").await?.expect(404)?;
    let admin = aro_fixtures::TestClient::new(format!(
        "http://{}",
        process.addr("admin").expect("an admin listener")
    ));
    let metrics = String::from_utf8(admin.get("/metrics").await?.expect(200)?.body.to_vec())?;
    for name in [
        "frontend_http_requests_total{",
        "frontend_http_requests_duration_seconds_bucket{",
        "frontend_health{",
    ] {
        let lines: Vec<&str> = metrics.lines().filter(|line| line.starts_with(name)).collect();
        assert!(!lines.is_empty(), "{name} in\n{metrics}");
        // The front end is a pod, and what it counts says which one.
        let of_pod = "namespace=\"aro-hcp\",pod=\"aro-hcp-frontend-";
        assert!(lines.iter().all(|line| line.contains(of_pod)), "{lines:#?}");
    }
    admin.get("/readyz").await?.expect(200)?;
    Ok(())
}
