//! The two signals that stop a process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGINT and SIGTERM. Process-wide by nature: only the binary makes one.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to listen. From here on neither signal kills the process by itself.
    pub fn install() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal and tells its name. The binary stops gracefully on the first and exits at once
    /// on the second.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
