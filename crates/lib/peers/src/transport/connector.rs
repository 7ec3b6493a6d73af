//! Connections of the HTTP client, opened by the one dialer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use aro_net::{Connection, Dialer, HostPort};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection as ClientConnection};
use hyper_util::rt::TokioIo;

/// Opens connections to the host of a URI.
#[derive(Clone)]
pub(super) struct Connector(pub(super) Dialer);

/// Where a URI leads. An IPv6 address loses its brackets.
fn target(uri: &Uri) -> Option<HostPort> {
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(HostPort { host, port: uri.port_u16().unwrap_or(80) })
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.0.clone();
        Box::pin(async move {
            let no_host = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "the URI names no host");
            let target = target(&uri).ok_or_else(no_host)?;
            Ok(Stream(TokioIo::new(dialer.dial(&target, None).await?)))
        })
    }
}

/// A connection as the HTTP client takes it.
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
    fn a_uri_leads_to_its_host_and_port() {
        for (uri, host, port) in [
            (
                "http://clusters-service.cluster-service.svc:8000/api",
                "clusters-service.cluster-service.svc",
                8000,
            ),
            ("http://[::1]:9/", "::1", 9),
            ("http://peer/", "peer", 80),
        ] {
            let target = target(&uri.parse().unwrap()).unwrap();
            assert_eq!((target.host.as_str(), target.port), (host, port));
        }
        assert!(target(&"/only/a/path".parse().unwrap()).is_none());
    }
}
