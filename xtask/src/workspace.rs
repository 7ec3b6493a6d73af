//! What `cargo metadata` says about the workspace, reduced to what the rules need.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::layers::{Crate, Dependency};

/// The workspace's directory.
pub fn root() -> anyhow::Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(manifest.parent().context("xtask lives in the workspace's root")?.to_owned())
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
