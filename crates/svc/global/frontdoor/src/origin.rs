//! Getting a document from the origin.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_net::{DialError, Dialer, HostPort, Resolve, Tls};
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use url::Url;

/// The largest document; a key set has a few kilobytes.
pub(crate) const LARGEST_DOCUMENT: usize = 1024 * 1024;

/// Why the origin gave no document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OriginError {
    /// No connection.
    #[error("connect to the origin")]
    Dial(#[source] DialError),
    /// No usable HTTP response.
    #[error("exchange with the origin")]
    Exchange(#[source] hyper::Error),
    /// The body broke off.
    #[error("read the origin's document")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A status that is neither success nor absence.
    #[error("the origin answered {0}")]
    Status(StatusCode),
    /// The document exceeds the limit.
    #[error("the origin's document is larger than {LARGEST_DOCUMENT} bytes")]
    TooLarge,
    /// The document is no JSON: an error page, say.
    #[error("the origin's document is not JSON")]
    NotJson,
    /// The request cannot be built.
    #[error("build the request to the origin")]
    Request(#[source] http::Error),
    /// The deadline passed first.
    #[error("the origin took longer than {0:?}")]
    Deadline(Duration),
}

impl OriginError {
    /// Whether the origin was too slow, not wrong.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Deadline(_) | Self::Dial(DialError::Deadline(..)))
    }
}

/// Where the origin is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OriginUrl {
    target: HostPort,
    authority: HeaderValue,
    /// What stands before a document's path, without a slash at the end; a container such as `/$web`.
    prefix: String,
    pub(crate) tls: bool,
}

impl OriginUrl {
    /// Parses `http(s)://host[:port][/prefix]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let plain = url.username().is_empty() && url.password().is_none();
        if !plain || url.query().is_some() || url.fragment().is_some() {
            return None;
        }
        let host = url.host_str()?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let target = HostPort {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port_or_known_default()?,
        };
        let prefix = url.path().trim_end_matches('/').to_owned();
        Some(Self { target, authority: HeaderValue::from_str(&authority).ok()?, prefix, tls })
    }
}

/// Resolves every name to one address: for an origin whose name leads elsewhere in DNS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed(pub(crate) SocketAddr);

#[async_trait]
impl Resolve for Fixed {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<SocketAddr> {
        Ok(self.0)
    }
}

/// The origin.
pub(crate) struct Origin {
    pub(crate) url: OriginUrl,
    pub(crate) dialer: Dialer,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) deadline: Duration,
}

impl Origin {
    /// The document at a path; `None` if the origin has none.
    pub(crate) async fn fetch(&self, path: &str) -> Result<Option<Bytes>, OriginError> {
        let fetched = tokio::time::timeout(self.deadline, self.exchange(path)).await;
        fetched.unwrap_or(Err(OriginError::Deadline(self.deadline)))
    }

    async fn exchange(&self, path: &str) -> Result<Option<Bytes>, OriginError> {
        let tls = self.tls.clone().map(|config| Tls { config, server_name: None });
        let stream = self.dialer.dial(&self.url.target, tls).await.map_err(OriginError::Dial)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(OriginError::Exchange)?;
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("{}{path}", self.url.prefix))
            .header(HOST, self.url.authority.clone())
            .header(ACCEPT, "application/json")
            .body(Empty::<Bytes>::new())
            .map_err(OriginError::Request)?;
        let read = async {
            let response = sender.send_request(request).await.map_err(OriginError::Exchange)?;
            match response.status() {
                StatusCode::OK => {}
                // Storage answers 403 for what a private container does not show.
                StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => return Ok(None),
                other => return Err(OriginError::Status(other)),
            }
            let body =
                Limited::new(response.into_body(), LARGEST_DOCUMENT).collect().await.map_err(|error| {
                    if error.is::<LengthLimitError>() {
                        OriginError::TooLarge
                    } else {
                        OriginError::Body(error)
                    }
                })?;
            check_json(body.to_bytes()).map(Some)
        };
        // The connection is driven here and ends with the request: nothing outlives the deadline.
        tokio::pin!(read);
        tokio::select! {
            biased;
            read = &mut read => read,
            ended = connection => match ended {
                Ok(()) => read.await,
                Err(error) => Err(OriginError::Exchange(error)),
            },
        }
    }
}

fn check_json(body: Bytes) -> Result<Bytes, OriginError> {
    match serde_json::from_slice::<serde::de::IgnoredAny>(&body) {
        Ok(_) => Ok(body),
        Err(_) => Err(OriginError::NotJson),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_host_with_an_optional_container() {
        let url = OriginUrl::parse("https://account.blob.core.windows.net/$web/").unwrap();
        assert_eq!(
            (url.target.to_string().as_str(), url.prefix.as_str()),
            ("account.blob.core.windows.net:443", "/$web")
        );
        assert_eq!(url.authority, "account.blob.core.windows.net");
        assert!(url.tls);
        let plain = OriginUrl::parse("http://127.0.0.1:8440").unwrap();
        assert_eq!((plain.prefix.as_str(), plain.tls), ("", false));
        assert_eq!(plain.authority, "127.0.0.1:8440");
        for bad in ["", "account", "ftp://x", "https://u:p@x", "https://x?q", "https://x#f", "https://"] {
            assert_eq!(OriginUrl::parse(bad), None, "{bad}");
        }
    }
}
