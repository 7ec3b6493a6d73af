//! Our API server against a real one, call by call.
#![allow(clippy::print_stderr, reason = "a skipped tier says so, and a run says what it compared")]

mod authorization;
mod clusters;
mod controllers;
mod crds;
mod durability;
mod gen_crds;
mod kubectl;
mod kubelets;
mod python;
mod real_controllers;
mod region;
mod support;
mod watching;
mod workloads;
mod wrong_input;

use std::path::Path;

use anyhow::{Result, ensure};
use aro_kube_e2e::known::Differences;
use aro_kube_e2e::ours::Ours;
use aro_kube_e2e::real::{Real, binaries};
use aro_kube_e2e::run::{Report, run};
use aro_kube_e2e::scenario;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Names one scenario (or several, separated by commas) to run alone.
#[allow(
    clippy::disallowed_methods,
    reason = "a convenience for whoever works on one scenario; tests have no configuration"
)]
fn wanted() -> Option<String> {
    std::env::var("ARO_SCENARIO").ok().filter(|name| !name.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_every_call_as_a_real_kube_apiserver_does() -> Result<()> {
    let Some(binaries) = tokio::task::spawn_blocking(binaries).await?? else {
        aro_prerequisites::skip("no Go toolchain: the differential tier does not run");
        return Ok(());
    };
    let mut scenarios = scenario::load(&Path::new(FOLDER).join("scenarios"))?;
    if let Some(wanted) = wanted() {
        scenarios.retain(|scenario| wanted.split(',').any(|name| name == scenario.name));
    }
    let known = Differences::load(&Path::new(FOLDER).join("differences.yaml"))?;
    let (ours, real) = tokio::join!(Ours::start(), Real::start(&binaries));
    let (ours, real) = (ours?, real?);
    let mut report = Report::default();
    for scenario in &scenarios {
        run(scenario, &ours.client, &real.client, &known, &mut report).await;
    }
    for failure in &report.failures {
        eprintln!("{failure}\n");
    }
    let ran: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    let stale: Vec<String> = known
        .unused(&ran)
        .map(|known| format!("{} / {}: {}", known.scenario, known.step, known.path))
        .collect();
    for stale in &stale {
        eprintln!("differences.yaml lists what differs no more: {stale}");
    }
    let Report { calls, equal, listed, failures, trace } = &report;
    if wanted().is_some() {
        eprintln!("{}", trace.join("\n"));
    }
    eprintln!(
        "{calls} calls: {equal} equal, {listed} equal but for listed differences, {} different",
        failures.len()
    );
    ensure!(
        failures.is_empty() && stale.is_empty(),
        "{} steps differ, {} entries are stale",
        failures.len(),
        stale.len()
    );
    Ok(())
}
