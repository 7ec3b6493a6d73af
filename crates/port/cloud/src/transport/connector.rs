//! Connections of the HTTP client, opened by the one dialer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aro_net::{Connection, Dialer, HostPort, Tls};
use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection as ClientConnection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;

/// Opens connections to the host of a URI.
#[derive(Clone)]
pub(super) struct Connector {
    dialer: Dialer,
    tls: Arc<ClientConfig>,
}

impl Connector {
    pub(super) fn new(dialer: Dialer, tls: Arc<ClientConfig>) -> Self {
        Self { dialer, tls }
    }

    /// The target of a URI, and whether it is encrypted.
    fn target(uri: &Uri) -> Option<(HostPort, bool)> {
        let encrypted = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        Some((HostPort { host, port }, encrypted))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let no_host = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "the URI names no host");
            let (target, encrypted) = Self::target(&uri).ok_or_else(no_host)?;
            let tls = encrypted.then(|| Tls { config: connector.tls.clone(), server_name: None });
            Ok(Stream(TokioIo::new(connector.dialer.dial(&target, tls).await?)))
        })
    }
}

/// A connection, plain or TLS, as the HTTP client takes it.
pub(super) struct Stream(TokioIo<Box<dyn Connection>>);

impl ClientConnection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_the_scheme_and_addresses_lose_their_brackets() {
        for (uri, host, port, encrypted) in [
            ("https://management.azure.com/subscriptions", "management.azure.com", 443, true),
            ("http://169.254.169.254/metadata", "169.254.169.254", 80, false),
            ("https://[::1]:8440/", "::1", 8440, true),
        ] {
            let (target, tls) = Connector::target(&uri.parse().unwrap()).unwrap();
            assert_eq!((target.host.as_str(), target.port, tls), (host, port, encrypted));
        }
        assert!(Connector::target(&"/only/a/path".parse().unwrap()).is_none());
    }
}
