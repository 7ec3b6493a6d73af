//! One row per measurement, as a table and as JSON.

use serde::Serialize;

use crate::load::Outcome;

#[derive(Debug, Serialize)]
pub struct Row {
    pub store: String,
    pub what: String,
    pub requests: usize,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub server_mib: f64,
}

impl Row {
    pub fn new(store: &str, what: &str, outcome: &Outcome, server_mib: f64) -> Self {
        let round = |value: f64| (value * 100.0).round() / 100.0;
        Self {
            store: store.to_owned(),
            what: what.to_owned(),
            requests: outcome.latencies.len(),
            per_second: outcome.per_second().round(),
            p50_ms: round(outcome.percentile(0.50)),
            p99_ms: round(outcome.percentile(0.99)),
            server_mib: round(server_mib),
        }
    }
}

pub fn print(title: &str, rows: &[Row]) {
    println!("\n{title}\n");
    println!("| store | what | requests | per second | p50 ms | p99 ms | server MiB |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for row in rows {
        println!(
            "| {} | {} | {} | {:.0} | {:.2} | {:.2} | {:.1} |",
            row.store, row.what, row.requests, row.per_second, row.p50_ms, row.p99_ms, row.server_mib
        );
    }
    if let Ok(json) = serde_json::to_string(&serde_json::json!({"title": title, "rows": rows})) {
        println!("\n{json}");
    }
}
