//! One row per measurement, as a table and as JSON.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::load::Outcome;

#[derive(Debug, Serialize)]
pub struct Row {
    pub subject: String,
    pub what: String,
    pub requests: usize,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub server_mib: f64,
}

impl Row {
    pub fn new(subject: &str, what: &str, outcome: &Outcome, server_mib: f64) -> Self {
        let round = |value: f64| (value * 100.0).round() / 100.0;
        Self {
            subject: subject.to_owned(),
            what: what.to_owned(),
            requests: outcome.latencies.len(),
            per_second: outcome.per_second().round(),
            p50_ms: round(outcome.percentile(0.50)),
            p99_ms: round(outcome.percentile(0.99)),
            server_mib: round(server_mib),
        }
    }
}

impl Row {
    /// Something that was done once: so many things in so much time.
    pub fn single(subject: &str, what: &str, count: usize, took: Duration, server_mib: f64) -> Self {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let row = Self::new(subject, what, &Outcome { took, latencies: vec![micros] }, server_mib);
        Self { requests: count, per_second: (count as f64 / took.as_secs_f64()).round(), ..row }
    }
}

/// The memory a process has in use.
pub fn resident_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("a resident size")?;
    let kib: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kib / 1024.0)
}

pub fn print(title: &str, rows: &[Row]) {
    println!("\n{title}\n");
    println!("| subject | what | requests | per second | p50 ms | p99 ms | server MiB |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for row in rows {
        println!(
            "| {} | {} | {} | {:.0} | {:.2} | {:.2} | {:.1} |",
            row.subject, row.what, row.requests, row.per_second, row.p50_ms, row.p99_ms, row.server_mib
        );
    }
    if let Ok(json) = serde_json::to_string(&serde_json::json!({"title": title, "rows": rows})) {
        println!("\n{json}");
    }
}
