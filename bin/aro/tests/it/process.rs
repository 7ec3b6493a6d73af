//! Running the program and waiting for it, without sleeping blindly.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a start may take before the test fails.
const PATIENCE: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_millis(10);

/// The program with a clean environment.
pub fn aro() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aro"));
    command.env_clear().env("HOME", "/nonexistent");
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn finished(output: &Output) -> bool {
    output.status.success()
}

/// A running program; killed if the test ends before it does.
pub struct Running {
    child: Option<Child>,
    file: PathBuf,
    _dir: tempfile::TempDir,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("endpoints.json");
        let child = aro()
            .args(arguments)
            .args(["--set", "frontend.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"])
            .args(["--set", "azure_local.listen=127.0.0.1:0", "--set", "dns.listen=127.0.0.1:0"])
            .args(["--set", "proxy.listen=127.0.0.1:0", "--set", "frontdoor.listen=127.0.0.1:0"])
            .args(["--set", "kube.listen=127.0.0.1:0", "--set", "maestro.debug_listen=127.0.0.1:0"])
            .args(["--set", "clusters_service.debug_listen=127.0.0.1:0"])
            .arg("--endpoints-file")
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child: Some(child), file, _dir: dir }
    }

    /// Waits until the program is ready and tells its addresses.
    pub fn endpoints(&mut self) -> BTreeMap<String, SocketAddr> {
        let glances = PATIENCE.as_millis() / GLANCE.as_millis();
        for _ in 0..glances {
            if let Ok(text) = std::fs::read_to_string(&self.file) {
                return serde_json::from_str(&text).unwrap();
            }
            if self.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                break;
            }
            std::thread::park_timeout(GLANCE);
        }
        self.signal(Signal::SIGKILL);
        let output = self.finish();
        panic!("not ready: {} {}", text(&output.stdout), text(&output.stderr));
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().unwrap().id();
        // It may be gone already.
        let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal);
    }

    pub fn finish(&mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
