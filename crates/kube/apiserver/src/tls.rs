//! The handshake: which cluster, and who.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use aro_base::{Timestamp, chain};
use aro_pki::Subject;
use aro_web::{BodyLimits, Handshake};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{Acceptor, ServerConfig, WebPkiClientVerifier};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::cluster::Cluster;
use crate::clusters::Clusters;
use crate::identity::user::User;
use crate::observe::Observer;
use crate::service::ClusterService;

/// Picks the cluster by the name the client asks for. Clients that ask for none get the default cluster.
#[derive(Clone)]
pub struct ByServerName {
    pub clusters: Clusters,
    pub default: Option<Arc<str>>,
    /// What request bodies are read by.
    pub body: BodyLimits,
    /// How much of the budget of request bodies one cluster may use.
    pub body_share: u64,
    pub observer: Observer,
}

/// Names every API server answers to inside its cluster.
pub(crate) fn standard_names() -> Vec<String> {
    [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ]
    .map(str::to_owned)
    .to_vec()
}

impl Handshake for ByServerName {
    type Stream = TlsStream<TcpStream>;
    type Service = ClusterService;

    async fn shake(
        &self,
        stream: TcpStream,
        _peer: SocketAddr,
    ) -> io::Result<(Self::Stream, ClusterService)> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let name = hello.client_hello().server_name().map(str::to_owned);
        let cluster = match &name {
            Some(name) => self
                .clusters
                .by_host(name)
                .or_else(|| standard_names().contains(name).then(|| self.fallback()).flatten()),
            None => self.fallback(),
        };
        let Some(cluster) = cluster else {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("no cluster answers to {name:?}")));
        };
        let config = server_config(&self.clusters, &cluster).map_err(io::Error::other)?;
        let stream = hello.into_stream(config).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let peer = certificate.and_then(|der| Some(user_of(Subject::of_certificate(der).ok()?, der)));
        let budget = cluster.body_budget.get_or_init(|| self.body.budget.share(self.body_share)).clone();
        Ok((
            stream,
            ClusterService {
                cluster,
                peer: peer.map(Arc::new),
                body: BodyLimits { budget, ..self.body.clone() },
                observer: Some(self.observer.clone()),
            },
        ))
    }
}

impl ByServerName {
    fn fallback(&self) -> Option<Arc<Cluster>> {
        self.default.as_ref().and_then(|name| self.clusters.get(name))
    }
}

/// The certificate's name is the user, its organizations are the groups.
fn user_of(subject: Subject, certificate: &[u8]) -> User {
    let mut user = User::authenticated(subject.common_name, subject.organizations);
    let id = format!("X509SHA256={}", aro_pki::fingerprint(certificate));
    user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![id]);
    user
}

/// A cluster's side of TLS, until its certificate is due for renewal.
#[derive(Clone)]
pub(crate) struct ServingTls {
    config: Arc<ServerConfig>,
    renew: Timestamp,
}

/// The TLS configuration for a new connection. The certificate is renewed when two thirds of its lifetime are over; connections
/// that exist keep the configuration they were made with.
fn server_config(clusters: &Clusters, cluster: &Arc<Cluster>) -> Result<Arc<ServerConfig>, String> {
    let current = cluster.tls.read().clone();
    if let Some(current) = &current
        && cluster.now() < current.renew
    {
        return Ok(current.config.clone());
    }
    match issue(clusters, cluster) {
        Ok(new) => {
            if current.is_some() {
                tracing::info!(cluster = cluster.name(), "serving certificate renewed");
            }
            *cluster.tls.write() = Some(new.clone());
            Ok(new.config)
        }
        Err(error) => {
            let Some(current) = current else { return Err(error) };
            tracing::warn!(
                cluster = cluster.name(),
                error,
                "serving certificate not renewed; keeping the old one"
            );
            Ok(current.config)
        }
    }
}

/// The cluster's own certificate, and clients of its own authority or none.
fn issue(clusters: &Clusters, cluster: &Arc<Cluster>) -> Result<ServingTls, String> {
    let now = cluster.now();
    let issued = cluster.keys.serving(clusters.server_names(cluster.name()), now);
    let issued = issued.map_err(|error| chain(&error).to_string())?;
    let expires = aro_pki::expires(&issued.certificate).ok_or("the issued certificate has no expiry")?;
    let renew = now.saturating_add(expires.duration_since(now) * 2 / 3).unwrap_or(expires);
    let authority = CertificateDer::from_pem_slice(cluster.keys.authority.certificate().as_bytes());
    let authority = authority.map_err(|error| error.to_string())?;
    let certificate =
        CertificateDer::from_pem_slice(issued.certificate.as_bytes()).map_err(|error| error.to_string())?;
    let key =
        PrivateKeyDer::from_pem_slice(issued.key.expose().as_bytes()).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    roots.add(authority).map_err(|error| error.to_string())?;
    let provider = aro_pki::crypto_provider();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = verifier.allow_unauthenticated().build().map_err(|error| error.to_string())?;
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.with_client_cert_verifier(verifier);
    let mut config = config.with_single_cert(vec![certificate], key).map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(ServingTls { config: Arc::new(config), renew })
}

#[cfg(test)]
mod tests;
