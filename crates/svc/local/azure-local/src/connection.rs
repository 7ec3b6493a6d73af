//! Connections that a fault can cut: without an answer, without a farewell.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::Service;

/// Cuts one connection. In the extensions of every request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut(Arc<AtomicBool>);

impl Cut {
    /// Nothing is written any more; the server gives the connection up when it tries. On HTTP/2 all requests of the
    /// connection lose their answers.
    pub(crate) fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::ConnectionReset.into()),
            false => Ok(()),
        }
    }
}

/// A stream that fails once it is cut.
#[derive(Debug)]
pub(crate) struct CuttableStream<S> {
    pub inner: S,
    pub cut: Cut,
}

impl<S: AsyncRead + Unpin> AsyncRead for CuttableStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.cut.check()?;
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CuttableStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.cut.check()?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.cut.check()?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.cut.check()?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.cut.check()?;
        Pin::new(&mut self.inner).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

/// The service of one connection: requests carry what cuts it.
#[derive(Debug, Clone)]
pub(crate) struct PerConnection<S> {
    pub service: S,
    pub cut: Cut,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for PerConnection<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        request.extensions_mut().insert(self.cut.clone());
        self.service.call(request)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_stream_that_is_cut_delivers_nothing_more() {
        let (mut near, far) = tokio::io::duplex(64);
        let cut = Cut::default();
        let mut stream = CuttableStream { inner: far, cut: cut.clone() };
        stream.write_all(b"a").await.unwrap();
        cut.cut();
        assert_eq!(stream.write_all(b"b").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert!(stream.read_u8().await.is_err() && stream.shutdown().await.is_err());
        drop(stream);
        let mut received = Vec::new();
        near.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"a");
    }
}
