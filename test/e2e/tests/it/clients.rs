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
    let cache = aro_prerequisites::cache().context("HOME or ARO_CACHE is set")?;
    Ok(cache.join("clients"))
}

/// The directory of the published specifications.
pub fn specs() -> Option<PathBuf> {
    aro_prerequisites::specs("arm-hcp").and_then(|folder| Some(folder.parent()?.to_owned()))
}

pub fn succeeded(output: &Output, what: &str) -> Result<()> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{what}:\n{}\n{}", text(&output.stdout), text(&output.stderr));
    Ok(())
}
