//! What tests need from the machine and do not bring along: published specifications, kubectl, peers built from their Go
//! sources. One place decides what happens when something is missing.
//!
//! With `ARO_REQUIRE=all` (CI) a missing prerequisite fails the test. Without it the test is skipped: the reason is
//! printed, and appended to the file that `ARO_SKIPPED` names, so that a run can end with a list.
#![allow(clippy::disallowed_methods, reason = "tests find their inputs by the environment")]
#![allow(clippy::panic, reason = "a required prerequisite that is missing fails the test")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The workspace's directory.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Reports that something is missing and the test proves nothing without it.
///
/// # Panics
/// When everything is required.
#[track_caller]
pub fn skip(reason: &str) {
    let all = variable("ARO_REQUIRE").as_deref() == Some("all");
    assert!(!all, "required by ARO_REQUIRE=all: {reason}");
    // Past the test harness, which captures what tests print.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
    if let Some(path) = variable("ARO_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{reason}"));
    }
}

/// A folder of the published specifications: below `ARO_SPECS`, or beside the checkout.
pub fn specs(folder: &str) -> Option<PathBuf> {
    let beside = || Path::new(ROOT).join("../shared/specs");
    let found = variable("ARO_SPECS").map_or_else(beside, PathBuf::from).join(folder);
    if found.is_dir() {
        return Some(found);
    }
    skip(&format!(
        "the published specifications `{folder}` are not at hand; set ARO_SPECS to their directory"
    ));
    None
}

/// The directory for downloads and builds that outlive a checkout.
pub fn cache() -> Option<PathBuf> {
    let home = || variable("HOME").map(|home| format!("{home}/.cache/aro"));
    variable("ARO_CACHE").or_else(home).map(PathBuf::from)
}

/// Every kubectl there is: the one on the PATH, and those built into the cache.
pub fn kubectls() -> Vec<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = std::env::split_paths(&path)
        .map(|dir| dir.join("kubectl"))
        .find(|file| file.is_file())
        .into_iter()
        .collect();
    let peers = cache().and_then(|cache| std::fs::read_dir(cache.join("peers")).ok());
    let built = peers.into_iter().flatten().flatten().map(|peer| peer.path().join("bin/kubectl"));
    found.extend(built.filter(|file| file.is_file()));
    if found.is_empty() {
        skip("no kubectl on the PATH or in the cache; `make deps-kubectl` installs one");
    }
    found
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
