//! Generated documents: written by the program itself, kept in `docs/`, compared in `make lint`.

use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::workspace;

/// The generated files in `docs/`.
const FILES: [&str; 2] = ["config.md", "cli.md"];

/// Writes the files; with `check` only tells which ones differ.
pub fn run(root: &Path, check: bool) -> anyhow::Result<Vec<String>> {
    let docs = root.join("docs");
    if !check {
        generate(root, &docs)?;
        return Ok(Vec::new());
    }
    let fresh = tempfile::tempdir().context("make a temporary directory")?;
    generate(root, fresh.path())?;
    let mut complaints = Vec::new();
    for file in FILES {
        let new = std::fs::read_to_string(fresh.path().join(file)).context(file)?;
        // A missing file is as outdated as a wrong one.
        let old = std::fs::read_to_string(docs.join(file)).unwrap_or_default();
        if let Some(complaint) = compare(file, &old, &new) {
            complaints.push(complaint);
        }
    }
    Ok(complaints)
}

fn generate(root: &Path, out: &Path) -> anyhow::Result<()> {
    let arguments = ["run", "--quiet", "--package", "aro", "--", "generate", "--out"];
    let status = workspace::cargo().current_dir(root).args(arguments).arg(out).status();
    ensure!(status.context("run cargo")?.success(), "aro could not write its reference documents");
    Ok(())
}

fn compare(file: &str, old: &str, new: &str) -> Option<String> {
    let different = old.lines().zip(new.lines()).position(|(old, new)| old != new);
    let line = different.unwrap_or_else(|| old.lines().count().min(new.lines().count())) + 1;
    (old != new).then(|| format!("docs/{file} is out of date from line {line}; run `cargo xtask gen`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(compare("cli.md", "a\nb\n", "a\nb\n"), None);
        let complaint = |old, new| compare("cli.md", old, new).unwrap();
        assert!(complaint("a\nb\n", "a\nc\n").contains("line 2"));
        assert!(complaint("", "a\n").contains("line 1"));
        assert!(complaint("a\n", "a\nb\n").contains("line 2"));
    }
}
