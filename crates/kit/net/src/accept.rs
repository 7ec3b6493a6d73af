//! Accepting connections, over shortages.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::Backoff;

/// Delays while the process is out of file descriptors or memory.
const SHORTAGE: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(1));

/// Accepts one connection. Errors of a single connection are skipped. A shortage of file descriptors or memory is waited
/// out: closing the listener would turn it into an outage.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let mut attempts = SHORTAGE.attempts();
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "accept failed; retrying");
                attempts.wait().await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
