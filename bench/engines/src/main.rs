//! Measures engines that could hold Kubernetes objects. Every cell runs in a process of its own, which then ends without
//! closing anything; a further process recovers what it left.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the real clock")]

mod engine;
mod load;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use engine::{ENGINES, Failure};
use serde_json::{Value, json};

const KEYS: [u64; 2] = [20_000, 100_000];
const WRITERS: [u64; 2] = [1, 64];
/// No cell's load lasts longer.
const LIMIT: Duration = Duration::from_secs(10);
/// How often every key is overwritten before the size on disk is taken.
const ROUNDS: u64 = 5;

struct Arguments {
    seconds: f64,
    dir: PathBuf,
    json: Option<PathBuf>,
    cell: Option<Value>,
}

fn arguments() -> Result<Arguments, Failure> {
    let mut read = Arguments { seconds: 2.0, dir: std::env::temp_dir(), json: None, cell: None };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--seconds" => read.seconds = value.parse()?,
            "--dir" => read.dir = value.into(),
            "--json" => read.json = Some(value.into()),
            "--cell" => read.cell = Some(serde_json::from_str(&value)?),
            _ => return Err(format!("what is {name}?").into()),
        }
    }
    Ok(read)
}

fn main() -> ExitCode {
    match arguments().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    if let Some(cell) = &arguments.cell {
        println!("{}", measure(cell, &arguments.dir, arguments.seconds)?);
        // As after a kill: nothing is closed, nothing is tidied up.
        std::process::exit(0);
    }
    let mut results = Vec::new();
    for name in ENGINES {
        for keys in KEYS {
            for writers in WRITERS {
                for batched in [false, true] {
                    let dir = tempfile::tempdir_in(&arguments.dir)?;
                    let cell = json!({"what": "write", "engine": name, "keys": keys, "writers": writers, "batched": batched});
                    results.push(child(&cell, dir.path(), arguments.seconds)?);
                }
            }
            let dir = tempfile::tempdir_in(&arguments.dir)?;
            results.push(child(&json!({"what": "space", "engine": name, "keys": keys}), dir.path(), arguments.seconds)?);
            results.push(child(&json!({"what": "recover", "engine": name, "keys": keys}), dir.path(), arguments.seconds)?);
        }
    }
    print(&results);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&results)?)?;
    }
    println!("\n{}", Value::from(results));
    Ok(())
}

/// Runs a cell in a process of its own.
fn child(cell: &Value, dir: &Path, seconds: f64) -> Result<Value, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--cell", &cell.to_string(), "--seconds", &seconds.to_string(), "--dir"])
        .arg(dir)
        .output()?;
    if !output.status.success() {
        return Err(format!("{cell}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    eprintln!("{measured}");
    Ok(measured)
}

fn measure(cell: &Value, dir: &Path, seconds: f64) -> Result<Value, Failure> {
    let name = cell["engine"].as_str().ok_or("a cell names its engine")?;
    let keys = cell["keys"].as_u64().ok_or("a cell says how many keys")?;
    let opened = Instant::now();
    let engine = engine::open(name, dir)?;
    let mut measured = cell.clone();
    match cell["what"].as_str() {
        Some("write") => {
            load::fill(&*engine, keys, 1, LIMIT)?;
            let writers = cell["writers"].as_u64().ok_or("a cell says how many writers")?;
            let length = Duration::from_secs_f64(seconds).min(LIMIT);
            let seen = load::overwrite(&engine, keys, writers, cell["batched"] == true, length)?;
            measured["writes_per_second"] = (seen.writes as f64 / seen.seconds).round().into();
            measured["p50_ms"] = millis(seen.quantile(0.5));
            measured["p99_ms"] = millis(seen.quantile(0.99));
        }
        Some("space") => {
            let started = Instant::now();
            let written = load::fill(&*engine, keys, 1 + ROUNDS, LIMIT)?;
            measured["written"] = written.into();
            measured["written_per_second"] = (written as f64 / started.elapsed().as_secs_f64()).round().into();
            engine.settle()?;
        }
        Some("recover") => {
            let found = engine.scan()?;
            measured["recovery_ms"] = millis(opened.elapsed());
            measured["records"] = found.records.into();
            if found.bytes != found.records * load::VALUE {
                return Err("what came back is not what was written".into());
            }
        }
        _ => return Err("no such cell".into()),
    }
    let disk = size(dir)?;
    measured["disk_mib"] = (disk >> 20).into();
    measured["amplification"] = ((disk as f64 / (keys * load::VALUE as u64) as f64 * 100.0).round() / 100.0).into();
    measured["rss_mib"] = (resident()? >> 10).into();
    Ok(measured)
}

fn millis(time: Duration) -> Value {
    ((time.as_secs_f64() * 1e5).round() / 100.0).into()
}

/// Blocks that are taken on disk, by all files below. Sparse and preallocated files count what they really take.
fn size(dir: &Path) -> Result<u64, Failure> {
    use std::os::unix::fs::MetadataExt as _;
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else { continue };
        sum += if metadata.is_dir() { size(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(sum)
}

/// Memory of this process in KiB.
fn resident() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

fn print(results: &[Value]) {
    let columns = |what: &str, names: &[&str]| {
        println!("\n| {} |\n|{}", names.join(" | "), "---|".repeat(names.len()));
        for result in results.iter().filter(|result| result["what"] == what) {
            let cells: Vec<String> = names.iter().map(|name| text(&result[*name])).collect();
            println!("| {} |", cells.join(" | "));
        }
    };
    columns("write", &["engine", "keys", "writers", "batched", "writes_per_second", "p50_ms", "p99_ms", "disk_mib", "rss_mib"]);
    columns("space", &["engine", "keys", "written_per_second", "disk_mib", "amplification", "rss_mib"]);
    columns("recover", &["engine", "keys", "recovery_ms", "records", "rss_mib"]);
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
