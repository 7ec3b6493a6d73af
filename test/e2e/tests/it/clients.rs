//! Where clients in other languages are; they are installed once, outside of the checkout.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

/// The directory of the clients' own files.
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../clients")
}

/// Installs a family of clients where it is missing, and says where they are.
pub fn installed(family: &str) -> Result<PathBuf> {
    let output = Command::new(directory().join("setup.sh")).arg(family).output().context("run setup.sh")?;
    succeeded(&output, "install the clients")?;
    cache().map(|cache| cache.join("clients"))
}

/// The published OpenAPI documents, where they are at hand. Says so loudly when they are not.
pub fn specs() -> Option<PathBuf> {
    let given = variable("ARO_SPECS").map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/specs");
    let found = given.into_iter().chain([beside]).find(|dir| dir.join("arm-hcp").is_dir());
    if found.is_none() {
        println!(
            "SKIPPED: the published OpenAPI documents are not at hand; set ARO_SPECS to their directory"
        );
    }
    found
}

pub fn succeeded(output: &Output, what: &str) -> Result<()> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{what}:\n{}\n{}", text(&output.stdout), text(&output.stderr));
    Ok(())
}

fn cache() -> Result<PathBuf> {
    let home = || variable("HOME").map(|home| format!("{home}/.cache/aro"));
    variable("ARO_CACHE").or_else(home).map(PathBuf::from).context("HOME or ARO_CACHE is set")
}

#[allow(clippy::disallowed_methods, reason = "tests have no configuration of their own")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
