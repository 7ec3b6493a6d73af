//! Go programs that are built once from published modules: see `test/peers/ocm.sh`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

const BUILDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../test/peers/ocm.sh");

/// The directory of the binaries, built if they are missing. `None`, with a log line, without a Go toolchain.
pub fn binaries() -> Option<PathBuf> {
    let output = Command::new(BUILDER).stderr(Stdio::inherit()).output().expect("run ocm.sh");
    if output.status.code() == Some(3) {
        aro_prerequisites::skip("no Go toolchain: nothing runs with the real OCM client");
        return None;
    }
    assert!(output.status.success(), "ocm.sh failed: {}", output.status);
    Some(PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim()))
}
