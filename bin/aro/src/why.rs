//! `aro why`: what happened to a resource, an operation or a bundle, and what it waits for.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use aro_app::AppConfig;
use aro_base::Timestamp;
use aro_runtime::Environment;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::cli::ConfigSources;
use crate::output::say;
use crate::stack;

/// Between two reads with `--follow`.
const FOLLOW: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub struct WhyArgs {
    #[command(flatten)]
    pub sources: ConfigSources,
    /// A resource id, an operation's id, an id of Clusters Service, or a bundle's id.
    #[arg(value_name = "ID")]
    pub id: String,
    /// How the timeline is printed.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Format,
    /// Goes on printing what happens next.
    #[arg(short, long)]
    pub follow: bool,
    /// The listener for operators of any process on the region's store. Not given: that of the region in the data directory.
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,
    /// Where the region's data lives.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Json,
    Table,
}

pub async fn run(args: WhyArgs) -> anyhow::Result<ExitCode> {
    let address = if let Some(address) = args.admin {
        address
    } else {
        let config = AppConfig::load(&args.sources.sources(args.data_dir))?;
        let data = stack::data_dir(&config, false, &Environment::of_process())?;
        let hint = format!(
            "no region runs in {}; start `aro up`, name its data directory with --data-dir, or a process with --admin",
            data.path().display()
        );
        aro_app::admin_address(data.path()).context(hint)?
    };
    let mut printed = 0;
    loop {
        let timeline = aro_app::fetch_timeline(address, &args.id).await?;
        let entries = timeline["entries"].as_array().cloned().unwrap_or_default();
        if entries.is_empty() && !args.follow {
            anyhow::bail!(
                "nothing is recorded about {}; entries are kept for seven days, and a cluster is found by its resource id, its operations, its id in Clusters Service and its bundles",
                args.id
            );
        }
        match args.output {
            Format::Json if !args.follow => say(&format!("{timeline:#}\n")),
            Format::Json => entries.iter().skip(printed).for_each(|entry| say(&format!("{entry}\n"))),
            Format::Table => say(&table(&entries, printed)),
        }
        printed = entries.len();
        if !args.follow {
            if args.output == Format::Table {
                say(&blockers(&timeline));
            }
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(FOLLOW).await;
    }
}

/// One line for each entry: the time since the first one and since the entry before, role, step, how it went.
fn table(entries: &[Value], skip: usize) -> String {
    let at = |entry: &Value| entry["at"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let first = entries.first().and_then(at);
    let mut text = String::new();
    if skip == 0 && !entries.is_empty() {
        let header = [("since start", "waited", "role", "step")];
        text.extend(header.map(|(since, waited, role, step)| {
            format!("{since:>12} {waited:>10}  {role:<17} {step:<28} what\n")
        }));
    }
    let mut before = skip.checked_sub(1).and_then(|last| entries.get(last)).and_then(at).or(first);
    for entry in entries.iter().skip(skip) {
        let now = at(entry);
        let word = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let line = format!(
            "{:>12} {:>10}  {:<17} {:<28} {}",
            between(first, now),
            between(before, now),
            word("role"),
            word("step"),
            outcome(entry)
        );
        text.push_str(line.trim_end());
        text.push('\n');
        before = now;
    }
    text
}

fn between(from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    let (Some(from), Some(to)) = (from, to) else { return String::new() };
    let millis = to.duration_since(from).as_millis();
    match millis.abs() {
        0..10_000 => format!("{millis} ms"),
        _ => format!("{}.{} s", millis / 1000, (millis.abs() % 1000) / 100),
    }
}

fn outcome(entry: &Value) -> String {
    let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let state = match text("/outcome/state") {
        "waiting" => format!("waits for {}", text("/outcome/on")),
        "failed" => format!("failed: {}", text("/outcome/reason")),
        other => other.to_owned(),
    };
    match text("/detail") {
        "" => state,
        detail => format!("{state}: {detail}"),
    }
}

/// What it waits for now.
fn blockers(timeline: &Value) -> String {
    let blockers = timeline["blockers"].as_array().cloned().unwrap_or_default();
    let lines = blockers.iter().map(|entry| {
        let word = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        format!("  {} {}: {}\n", word("role"), word("step"), outcome(entry))
    });
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => "nothing is waited for\n".to_owned(),
        false => format!("not finished:\n{lines}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_timeline_shows_times_waits_and_the_blocker() {
        let entries = vec![
            json!({"at": "2026-01-01T00:00:00Z", "role": "frontend", "step": "accept", "outcome": {"state": "done"}, "detail": "PUT"}),
            json!({"at": "2026-01-01T00:00:00.12Z", "role": "clusters-service", "step": "network",
                   "outcome": {"state": "waiting", "on": "subnet s"}}),
            json!({"at": "2026-01-01T00:01:00Z", "role": "clusters-service", "step": "network",
                   "outcome": {"state": "failed", "reason": "no such subnet"}}),
        ];
        let text = table(&entries, 0);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].ends_with("done: PUT") && lines[1].contains("0 ms"), "{text}");
        assert!(lines[2].contains("120 ms") && lines[2].ends_with("waits for subnet s"), "{text}");
        assert!(lines[3].contains("60.0 s") && lines[3].contains("59.8 s"), "{text}");
        assert_eq!(table(&entries, 2).lines().count(), 1);
        let shown = blockers(&json!({ "blockers": [entries[1]] }));
        assert!(shown.contains("clusters-service network: waits for subnet s"), "{shown}");
        assert_eq!(blockers(&json!({"blockers": []})), "nothing is waited for\n");
    }
}
