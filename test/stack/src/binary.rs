//! Where the binary under test is.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// Builds the binary once per test process (a no-op when it is fresh) and says where it is.
pub fn aro_binary() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "aro", "--message-format", "json"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .context("run cargo to build the binary under test")?;
    let messages = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the binary under test does not build:\n{messages}");
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| match message["target"]["name"].as_str() {
            Some("aro") => message["executable"].as_str().map(PathBuf::from),
            _ => None,
        })
        .context("cargo did not say where the binary is")
}
