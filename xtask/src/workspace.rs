//! What `cargo metadata` says about the workspace, reduced to what the rules need.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::layers::{Crate, Dependency};

/// The workspace's directory.
pub fn root() -> anyhow::Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(manifest.parent().context("xtask lives in the workspace's root")?.to_owned())
}

/// Cargo, without the variables by which an outer cargo describes this package: build scripts watch them, and would run
/// again, and with them half of the workspace would be compiled again.
#[allow(clippy::disallowed_methods, reason = "the variables of the process are what must not be inherited")]
pub fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Every member, with its dependencies on other members.
pub fn crates(root: &Path) -> anyhow::Result<Vec<Crate>> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec().context("run cargo metadata")?;
    let mut crates = Vec::new();
    for package in &metadata.packages {
        let dir = package.manifest_path.parent().context("a manifest lies in a directory")?;
        let path = dir.strip_prefix(&metadata.workspace_root)?.to_string();
        let dependencies = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
        crates.push(Crate {
            name: package.name.to_string(),
            path,
            dependencies: dependencies
                .map(|dependency| Dependency {
                    name: dependency.name.clone(),
                    dev: dependency.kind == DependencyKind::Development,
                })
                .collect(),
        });
    }
    Ok(crates)
}
