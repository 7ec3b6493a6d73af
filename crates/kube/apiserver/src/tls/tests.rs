use std::time::Duration;

use aro_base::{ManualClock, SharedClock, SignedDuration};
use aro_runtime::Metrics;
use rustls::ClientConfig;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::{TlsConnector, client};

use super::*;

/// The test's clock, for rustls.
#[derive(Debug)]
struct Now(Timestamp);

impl TimeProvider for Now {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

type Ends = (client::TlsStream<TcpStream>, TlsStream<TcpStream>);

/// Both ends of a connection of a client that trusts the cluster's authority.
async fn connect(server: &ByServerName, now: Timestamp) -> io::Result<Ends> {
    let cluster = server.clusters.get("one").unwrap();
    let mut roots = RootCertStore::empty();
    let authority = cluster.keys.authority.certificate();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = aro_pki::crypto_provider();
    let config = ClientConfig::builder_with_details(provider, Arc::new(Now(now)))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let stream = TcpStream::connect(listener.local_addr()?).await?;
    let (accepted, peer) = listener.accept().await?;
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let (client, server) = tokio::join!(connector.connect(name, stream), server.shake(accepted, peer));
    Ok((client?, server?.0))
}

fn certificate_of(ends: &Ends) -> Vec<u8> {
    ends.0.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// Asserts that bytes still go from the client to the server.
async fn assert_alive(ends: &mut Ends) {
    ends.0.write_all(b"x").await.unwrap();
    ends.0.flush().await.unwrap();
    assert_eq!(ends.1.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn the_serving_certificate_is_renewed_before_it_expires_and_connections_stay() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
    let shared: SharedClock = clock.clone();
    let clusters = Clusters::open(directory.path(), false, 8, "example.test", shared).unwrap();
    clusters.ensure("one").await.unwrap();
    let server = ByServerName {
        clusters,
        default: Some("one".into()),
        body: aro_web::BodyLimits {
            max: 1024,
            discard: 0,
            timeout: std::time::Duration::from_secs(1),
            budget: aro_web::BodyBudget::unlimited(),
        },
        body_share: 1024,
        observer: Observer::new(&Metrics::default()),
    };
    let days = |days: i64| SignedDuration::from_hours(days * 24);
    let at = |clock: &ManualClock| aro_base::Clock::now(clock);
    let mut first = connect(&server, at(&clock)).await.unwrap();
    clock.advance(days(240));
    let same = connect(&server, at(&clock)).await.unwrap();
    assert_eq!(certificate_of(&first), certificate_of(&same), "a third of its lifetime is left");
    clock.advance(days(10));
    let renewed = connect(&server, at(&clock)).await.unwrap();
    assert_ne!(certificate_of(&first), certificate_of(&renewed));
    // The first certificate has expired by now.
    clock.advance(days(150));
    connect(&server, at(&clock))
        .await
        .expect("clients accept the certificate of a process that runs for long");
    assert_alive(&mut first).await;
}
