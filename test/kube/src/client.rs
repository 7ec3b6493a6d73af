//! A client that shows answers as they are: code, headers, bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::scenario::at;

/// One API server, and who speaks to it.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    name: ServerName<'static>,
    tls: TlsConnector,
    /// The same without a certificate.
    bare: TlsConnector,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer that is read line by line.
pub struct Lines {
    pub code: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    rest: BytesMut,
    connection: JoinHandle<()>,
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// How long one call may take.
const DEADLINE: Duration = Duration::from_mins(1);

fn trusting(authority: &str) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(authority?)?;
    }
    Ok(ClientConfig::builder_with_provider(aro_pki::crypto_provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots))
}

impl Client {
    /// A client with a certificate of its own.
    pub fn new(
        address: SocketAddr,
        name: &str,
        authority: &str,
        certificate: &str,
        key: &str,
    ) -> Result<Self> {
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        let anonymous = Self::anonymous(address, name, authority)?;
        let config = trusting(authority)?.with_client_auth_cert(chain, key)?;
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), ..anonymous })
    }

    /// A client without a certificate, which trusts one authority.
    pub fn anonymous(address: SocketAddr, name: &str, authority: &str) -> Result<Self> {
        let tls = TlsConnector::from(Arc::new(trusting(authority)?.with_no_client_auth()));
        let name = ServerName::try_from(name.to_owned())?;
        Ok(Self { address, name, bare: tls.clone(), tls })
    }

    /// The first user of a kubeconfig with certificates inside.
    pub fn of_kubeconfig(text: &str) -> Result<Self> {
        let config: Value = serde_saphyr::from_str(text)?;
        let text = |path: &str| {
            at(&config, path).and_then(Value::as_str).with_context(|| format!("{path} in a kubeconfig"))
        };
        let decoded =
            |path: &str| -> Result<String> { Ok(String::from_utf8(STANDARD.decode(text(path)?)?)?) };
        let server = text("clusters[0].cluster.server")?.trim_start_matches("https://").parse()?;
        Self::new(
            server,
            text("clusters[0].cluster.tls-server-name")?,
            &decoded("clusters[0].cluster.certificate-authority-data")?,
            &decoded("users[0].user.client-certificate-data")?,
            &decoded("users[0].user.client-key-data")?,
        )
    }

    /// The same server, and nobody who speaks to it.
    pub fn without_certificate(&self) -> Self {
        Self { tls: self.bare.clone(), ..self.clone() }
    }

    /// A connection of its own, for those who count every byte.
    pub async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(self.tls.connect(self.name.clone(), stream).await?)
    }

    async fn handshake(&self) -> Result<(SendRequest<Full<Bytes>>, JoinHandle<()>)> {
        let stream = self.connect().await?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        #[allow(clippy::disallowed_methods, reason = "ended with the answers it carries")]
        let connection = tokio::spawn(async move {
            // An error shows where the answer is read.
            let _ = connection.await;
        });
        Ok((sender, connection))
    }

    async fn send(&self, request: Request<Bytes>) -> Result<(hyper::Response<Incoming>, JoinHandle<()>)> {
        let (mut sender, connection) = self.handshake().await?;
        Ok((sender.send_request(request.map(Full::new)).await?, connection))
    }

    /// Makes a call and reads the answer to its end.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Answer> {
        let what = format!("{} {}", request.method(), request.uri());
        let answered = tokio::time::timeout(DEADLINE, async {
            let (response, connection) = self.send(request).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            connection.abort();
            Ok(Answer { code: parts.status, headers: parts.headers, body })
        });
        answered.await.with_context(|| format!("{what} took longer than {DEADLINE:?}"))?
    }

    /// Makes a call whose answer goes on for a while.
    pub async fn open(&self, request: Request<Bytes>) -> Result<Lines> {
        let (response, connection) = tokio::time::timeout(DEADLINE, self.send(request)).await??;
        let (parts, body) = response.into_parts();
        Ok(Lines { code: parts.status, headers: parts.headers, body, rest: BytesMut::new(), connection })
    }
}

/// One connection for many calls, made again when the server has closed it.
pub struct KeepAlive {
    client: Client,
    open: Option<(SendRequest<Full<Bytes>>, JoinHandle<()>)>,
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        if let Some((_, connection)) = &self.open {
            connection.abort();
        }
    }
}

impl KeepAlive {
    pub fn new(client: Client) -> Self {
        Self { client, open: None }
    }

    /// Makes a call and reads the answer to its end. `request` may be asked twice: a server may close a connection
    /// that is about to be used again.
    pub async fn call(&mut self, request: impl Fn() -> Result<Request<Bytes>>) -> Result<Answer> {
        let reused = self.open.is_some();
        let made = tokio::time::timeout(DEADLINE, self.attempt(request()?)).await?;
        match made {
            Err(_) if reused => {
                self.close();
                tokio::time::timeout(DEADLINE, self.attempt(request()?)).await?
            }
            made => made,
        }
    }

    fn close(&mut self) {
        if let Some((_, connection)) = self.open.take() {
            connection.abort();
        }
    }

    async fn attempt(&mut self, request: Request<Bytes>) -> Result<Answer> {
        if self.open.as_ref().is_some_and(|(sender, _)| sender.is_closed()) {
            self.close();
        }
        if self.open.is_none() {
            self.open = Some(self.client.handshake().await?);
        }
        let (sender, _) = self.open.as_mut().context("a connection")?;
        sender.ready().await?;
        let (parts, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { code: parts.status, headers: parts.headers, body })
    }
}

impl Lines {
    /// The next line. `None`: the answer is over.
    pub async fn next(&mut self, within: Duration) -> Result<Option<Bytes>> {
        let deadline = tokio::time::Instant::now() + within;
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end + 1).freeze();
                return Ok(Some(line.slice(..end)));
            }
            match tokio::time::timeout_at(deadline, self.body.frame()).await {
                Err(_) => bail!("no event came within {within:?}"),
                Ok(None) if self.rest.is_empty() => return Ok(None),
                Ok(None) => return Ok(Some(self.rest.split().freeze())),
                Ok(Some(frame)) => {
                    if let Ok(data) = frame?.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
