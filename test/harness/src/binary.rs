//! Where the binary under test is.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// How the binary is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    Debug,
    Release,
}

/// Builds the binary once per process (a no-op when it is fresh) and says where it is.
/// `ARO_BINARY` names another one, for measuring a build that exists already.
pub fn aro_binary(build: Build) -> Result<PathBuf> {
    if let Some(given) = given() {
        return Ok(given);
    }
    static DEBUG: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    static RELEASE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = match build {
        Build::Debug => DEBUG.get_or_init(|| compile(&[])),
        Build::Release => RELEASE.get_or_init(|| compile(&["--release"])),
    };
    built.clone().map_err(anyhow::Error::msg)
}

/// Whether `ARO_BINARY` names the binary under test: a release build, with which tests take their full size.
pub fn is_given() -> bool {
    given().is_some()
}

#[allow(clippy::disallowed_methods, reason = "tests and benchmarks have no configuration of their own")]
fn given() -> Option<PathBuf> {
    std::env::var("ARO_BINARY").ok().map(PathBuf::from)
}

fn compile(flags: &[&str]) -> Result<PathBuf, String> {
    run_cargo(flags).map_err(|error| format!("{error:#}"))
}

/// Removes the variables that describe the package of the outer cargo: build scripts watch those variables, and would run again, and
/// with them half of the workspace would be compiled again.
#[allow(clippy::disallowed_methods, reason = "the variables of the process are what must not be inherited")]
fn clean(mut cargo: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

fn run_cargo(flags: &[&str]) -> Result<PathBuf> {
    let output = clean(Command::new(option_env!("CARGO").unwrap_or("cargo")))
        .args(["build", "--quiet", "--package", "aro", "--message-format", "json-render-diagnostics"])
        .args(flags)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .context("run cargo to build the binary under test")?;
    let messages = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "the binary under test does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| match message["target"]["name"].as_str() {
            Some("aro") => message["executable"].as_str().map(PathBuf::from),
            _ => None,
        })
        .context("cargo did not say where the binary is")
}
