//! The original: Maestro's server and agent (which is Open Cluster Management's work agent) and its source client, built
//! once from Go modules by `test/peers/maestro.sh`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::pki::{Pki, text};

const BUILDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/maestro.sh");

/// The directory of the binaries, built if they are missing. `None`, with a log line, without a Go toolchain.
pub fn binaries() -> Result<Option<PathBuf>> {
    let output = Command::new(BUILDER).stderr(Stdio::inherit()).output().context("run maestro.sh")?;
    if output.status.code() == Some(3) {
        aro_prerequisites::skip("no Go toolchain: nothing runs with the original Maestro");
        return Ok(None);
    }
    ensure!(output.status.success(), "maestro.sh failed: {}", output.status);
    Ok(Some(PathBuf::from(String::from_utf8(output.stdout)?.trim())))
}

/// A process of the original. It is killed when this is dropped.
pub struct Peer {
    child: Child,
    log: PathBuf,
}

impl Peer {
    /// Starts one; its output goes into a file.
    pub fn start(binary: &Path, args: &[String], dir: &Path) -> Result<Self> {
        let log = dir.join(format!("{}.log", args.first().map_or("peer", String::as_str)));
        let out = File::create(&log)?;
        let child = Command::new(binary)
            .args(args)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        Ok(Self { child, log })
    }

    /// The end of its output.
    pub fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let skip = text.lines().count().saturating_sub(30);
        let lines = text.lines().skip(skip).map(|line| line.chars().take(300).collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// All of its output.
    pub fn said_all(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a binary to its end and returns its output.
pub fn run(binary: &Path, args: &[String], dir: &Path) -> Result<String> {
    let output = Command::new(binary).args(args).current_dir(dir).stdin(Stdio::null()).output()?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{} {args:?}: {}\n{said}", binary.display(), output.status);
    Ok(said)
}

/// The broker configuration file of the original's server and agent. `consumer` is `+` for the server.
pub fn broker_file(pki: &Pki, identity: &str, address: &str, consumer: &str, dir: &Path) -> Result<PathBuf> {
    let files = pki.identity(identity)?;
    let topic = |last: &str| format!("sources/maestro/consumers/{consumer}/{last}");
    let agents = match consumer {
        "+" => format!("$share/statussubscribers/{}", topic("agentevents")),
        _ => topic("agentevents"),
    };
    let config = json!({
        "brokerHost": address,
        "caFile": text(&pki.bundle()),
        "clientCertFile": text(&files.certificate),
        "clientKeyFile": text(&files.key),
        "topics": {"sourceEvents": topic("sourceevents"), "agentEvents": agents},
    });
    let path = dir.join(format!("broker-{identity}.json"));
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}
