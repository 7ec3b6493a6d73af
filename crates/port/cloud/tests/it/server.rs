//! The model behind TLS on a loopback port.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aro_base::{Clock as _, Secret, SignedDuration};
use aro_cloud::{ArmClient, Cloud, CloudConfig};
use aro_net::{Backoff, SystemResolve};
use aro_pki::{Authority, Leaf, Subject, Usage, Validity};
use aro_runtime::{Period, Section as _, SystemClock};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::model::{Fault, World, seen};

pub struct Server {
    pub address: SocketAddr,
    pub ca_file: PathBuf,
    pub connections: Arc<AtomicUsize>,
    _dir: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

impl Server {
    pub async fn start(world: Arc<World>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (ca, tls) = identity();
        let ca_file = dir.path().join("ca.pem");
        std::fs::write(&ca_file, ca).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let connections = Arc::new(AtomicUsize::new(0));
        tasks.spawn(accept(listener, tls, world, connections.clone()));
        Self { address, ca_file, connections, _dir: dir, _tasks: tasks }
    }

    pub fn config(&self) -> CloudConfig {
        CloudConfig {
            connect_to: Some(self.address),
            ca_file: Some(self.ca_file.clone()),
            deadline: Period::secs(20),
            retry_budget: 100,
            requests_per_second: 100_000,
            ..CloudConfig::default()
        }
    }

    pub fn cloud(&self) -> Cloud {
        let config = self.config().check().unwrap();
        let quick =
            |max| Backoff::new(std::time::Duration::from_millis(1), std::time::Duration::from_millis(max));
        Cloud::new(&config, Arc::new(SystemResolve), SystemClock::shared())
            .unwrap()
            .with_delays(quick(5), quick(5))
    }

    pub fn arm(&self) -> ArmClient {
        let cloud = self.cloud();
        cloud.arm(cloud.client_secret("tenant", "client", Secret::new("secret".to_owned())))
    }
}

fn identity() -> (String, TlsAcceptor) {
    let validity = Validity::from_now(SystemClock.now(), SignedDuration::from_hours(1));
    let authority = Authority::generate("test cloud", validity).unwrap();
    let names = ["management.azure.com", "login.microsoftonline.com", "acct.blob.core.windows.net"];
    let leaf = Leaf {
        subject: Subject { common_name: "cloud".to_owned(), organizations: Vec::new() },
        dns_names: names.map(str::to_owned).to_vec(),
        addresses: Vec::new(),
        usage: Usage::Server,
        validity,
    };
    let issued = authority.issue(&leaf).unwrap();
    let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.expose().as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(aro_pki::crypto_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    (authority.certificate().to_owned(), TlsAcceptor::from(Arc::new(config)))
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, world: Arc<World>, opened: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        opened.fetch_add(1, Ordering::SeqCst);
        let (tls, world) = (tls.clone(), world.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request| serve(world.clone(), request));
            // An error of the service ends the connection without a reply: that is what is wanted.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn serve(
    world: Arc<World>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let fault = match world.fault() {
        // A handshake that is refused looks the same to the client; a real wait is too long for a test.
        Fault::Refused => Fault::CutBefore,
        Fault::Slow => Fault::CutAfter,
        // A second is too long as well.
        Fault::Throttled | Fault::Shed => Fault::ErrorBefore,
        fault => fault,
    };
    let reply = world.answer(seen(Request::from_parts(head, body)), fault);
    reply.map(|reply| reply.map(Full::new)).ok_or_else(|| std::io::Error::other("cut"))
}

/// A listener that accepts and never answers.
pub async fn silent() -> (SocketAddr, JoinSet<Infallible>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut held = Vec::new();
        loop {
            if let Ok(accepted) = listener.accept().await {
                held.push(accepted);
            }
        }
    });
    (address, tasks)
}
