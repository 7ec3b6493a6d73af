//! `cargo xtask test`: every test of the workspace, and an honest end.
//!
//! The run ends with the list of what was skipped and why, the count, and `FLAKY <name>` for every test that failed and
//! passed when it was run again alone. A test is run again only with `--rerun-failed` (CI), and only when at most
//! [`MOST_FLAKY`] tests failed: more than that is not chance.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::workspace;

/// How many failed tests are run again.
const MOST_FLAKY: usize = 3;

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failed {
    /// The test binary.
    binary: PathBuf,
    name: String,
}

/// What the output of `cargo test` contains.
#[derive(Debug, Default)]
struct Report {
    passed: usize,
    failed: usize,
    failures: Vec<Failed>,
    /// The binary that runs now.
    binary: Option<PathBuf>,
    /// Inside the list of names that ends the output of a binary.
    listing: bool,
}

impl Report {
    /// Reads one line.
    fn read(&mut self, line: &str) {
        if self.listing {
            if let (Some(name), Some(binary)) = (line.strip_prefix("    "), &self.binary) {
                self.failures.push(Failed { binary: binary.clone(), name: name.trim().to_owned() });
                return;
            }
            self.listing = false;
        }
        if let Some(rest) = line.trim_start().strip_prefix("Running ") {
            let path = rest.rsplit_once('(').and_then(|(_, path)| path.strip_suffix(')'));
            self.binary = path.map(PathBuf::from);
        } else if line.trim_start().starts_with("Doc-tests ") {
            self.binary = None;
        } else if line == "failures:" {
            self.listing = true;
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            let count = |what: &str| {
                let part = rest.split([';', '.']).find(|part| part.trim().ends_with(what));
                part.and_then(|part| part.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
            };
            self.passed += count(" passed");
            self.failed += count(" failed");
        }
    }
}

/// Runs the tests; returns what is wrong.
pub fn run(root: &Path, rerun: bool, arguments: &[String]) -> anyhow::Result<Vec<String>> {
    let directories = build(root, arguments)?;
    let skipped = tempfile::NamedTempFile::new().context("make a temporary file")?;
    let mut report = Report::default();
    let passed = stream(
        workspace::cargo()
            .args(["test", "--workspace", "--no-fail-fast"])
            .args(arguments)
            .env("ARO_SKIPPED", skipped.path())
            .current_dir(root),
        |line| report.read(line),
    )?;
    let mut flaky = Vec::new();
    let mut complaints = Vec::new();
    if !passed {
        let again = rerun
            && !report.failures.is_empty()
            && report.failures.len() <= MOST_FLAKY
            && report.failures.len() == report.failed;
        for failure in &report.failures {
            if again && passes_alone(root, failure, &directories)? {
                flaky.push(failure.name.clone());
            } else {
                complaints.push(format!("FAILED {}", failure.name));
            }
        }
        if report.failures.is_empty() {
            complaints.push("the tests failed without naming one; see the output above".to_owned());
        }
    }
    let skipped = std::fs::read_to_string(skipped.path()).context("read the list of skipped tests")?;
    summary(&report, &flaky, &skipped)?;
    Ok(complaints)
}

/// Builds every test binary; returns the directory of the package of each.
fn build(root: &Path, arguments: &[String]) -> anyhow::Result<HashMap<PathBuf, PathBuf>> {
    let own = arguments.iter().take_while(|argument| *argument != "--");
    let output = workspace::cargo()
        .args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"])
        .args(own)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let mut directories = HashMap::new();
    for message in cargo_metadata::Message::parse_stream(output.stdout.as_slice()) {
        if let cargo_metadata::Message::CompilerArtifact(artifact) =
            message.context("read cargo's messages")?
            && let (Some(executable), Some(directory)) =
                (artifact.executable, artifact.manifest_path.parent())
        {
            directories.insert(executable.into(), directory.into());
        }
    }
    Ok(directories)
}

/// Runs a command with both outputs in one stream that is passed on line by line; returns whether it succeeded.
fn stream(command: &mut Command, mut read: impl FnMut(&str)) -> anyhow::Result<bool> {
    let (reader, writer) = std::io::pipe().context("make a pipe")?;
    let mut child = {
        let errors = writer.try_clone().context("make a pipe")?;
        command.stdin(Stdio::null()).stdout(writer).stderr(errors).spawn().context("run cargo")?
    };
    // The command holds the writing ends; the stream ends with it.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut out = std::io::stdout().lock();
    let mut lines = BufReader::new(reader);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).context("read the output of cargo")? > 0 {
        out.write_all(&line)?;
        read(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
    Ok(child.wait().context("wait for cargo")?.success())
}

/// Runs one test again, alone.
fn passes_alone(
    root: &Path,
    failure: &Failed,
    directories: &HashMap<PathBuf, PathBuf>,
) -> anyhow::Result<bool> {
    let binary = root.join(&failure.binary);
    let directory = directories.get(&binary).map_or(root, PathBuf::as_path);
    let status = Command::new(&binary)
        .args(["--exact", &failure.name, "--nocapture"])
        .current_dir(directory)
        .status()
        .with_context(|| format!("run {} again", failure.name))?;
    Ok(status.success())
}

fn summary(report: &Report, flaky: &[String], skipped: &str) -> anyhow::Result<()> {
    let mut reasons: Vec<&str> = skipped.lines().collect();
    let all = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    let mut out = std::io::stdout().lock();
    for reason in reasons {
        writeln!(out, "SKIPPED {reason}")?;
    }
    for name in flaky {
        writeln!(out, "FLAKY {name}")?;
    }
    let failed = report.failed - flaky.len();
    writeln!(out, "{} passed, {failed} failed, {all} skipped", report.passed + flaky.len())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/lib.rs (target/debug/deps/aro_base-1)
running 2 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/it/main.rs (target/debug/deps/it-2)
test walk::one ... FAILED

failures:

---- walk::one stdout ----
failures:
what the test printed

failures:
    walk::one
    walk::two

test result: FAILED. 5 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.03s
";

    #[test]
    fn failed_tests_are_found_with_their_binaries() {
        let mut report = Report::default();
        OUTPUT.lines().for_each(|line| report.read(line));
        assert_eq!((report.passed, report.failed), (7, 2));
        let binary = PathBuf::from("target/debug/deps/it-2");
        let failed = |name: &str| Failed { binary: binary.clone(), name: name.to_owned() };
        assert_eq!(report.failures, [failed("walk::one"), failed("walk::two")]);
    }
}
