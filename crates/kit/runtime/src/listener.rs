//! Sockets that are bound before anything else happens.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// Why an address could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process has it.
    #[error("port {} is in use; stop the process that listens on {addr}, or set `{key}` to another address (port 0 takes any free one)", addr.port())]
    InUse {
        /// The address asked for.
        addr: SocketAddr,
        /// The configuration key that names it.
        key: String,
    },
    /// Anything else.
    #[error("bind {addr} (`{key}`)")]
    Other {
        /// The address asked for.
        addr: SocketAddr,
        /// The configuration key that names it.
        key: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

/// A bound TCP socket and the address it really has.
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
    addr: SocketAddr,
}

impl Listener {
    /// Binds an address; port 0 takes any free port. `key` is the configuration key to name in an error.
    pub async fn bind(addr: SocketAddr, key: &str) -> Result<Self, BindError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { addr, key: key.to_owned() },
            _ => BindError::Other { addr, key: key.to_owned(), source },
        };
        let inner = TcpListener::bind(addr).await.map_err(failed)?;
        let addr = inner.local_addr().map_err(failed)?;
        Ok(Self { inner, addr })
    }

    /// The address it really has.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Gives up the name and keeps the socket.
    pub fn into_inner(self) -> TcpListener {
        self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn port_zero_reports_the_port_it_got() {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), "frontend.listen").await.unwrap();
        assert_ne!(listener.local_addr().port(), 0);
    }

    #[tokio::test]
    async fn a_port_in_use_names_the_port_and_the_key() {
        let first = Listener::bind(([127, 0, 0, 1], 0).into(), "frontend.listen").await.unwrap();
        let error = Listener::bind(first.local_addr(), "frontend.listen").await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("port {} is in use;", first.local_addr().port())), "{text}");
        assert!(text.contains("`frontend.listen`"), "{text}");
    }
}
