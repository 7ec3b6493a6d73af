use std::sync::Arc;

use anyhow::Result;
use aro_base::Timestamp;
use aro_frontdoor::FrontdoorConfig;
use aro_pki::{Authority, Leaf, Subject, Usage, Validity, crypto_provider};
use http::{Method, StatusCode};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::{Behaviour, Fixture, KEYS, exchange};

#[tokio::test]
async fn a_certificate_in_files_makes_the_listener_speak_tls() -> Result<()> {
    // rustls compares with the wall clock, so the validity is wide.
    let validity = Validity {
        not_before: Timestamp::from_second(1_000_000_000)?,
        not_after: Timestamp::from_second(4_000_000_000)?,
    };
    let authority = Authority::generate("test authority", validity)?;
    let issued = authority.issue(&Leaf {
        subject: Subject::new("frontdoor", Vec::<String>::new()),
        dns_names: vec!["oic.example.com".to_owned()],
        addresses: Vec::new(),
        usage: Usage::Server,
        validity,
    })?;
    let directory = tempfile::tempdir()?;
    let (certificate, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
    std::fs::write(&certificate, &issued.certificate)?;
    std::fs::write(&key, issued.key.expose())?;
    let door = Fixture::start(|config| FrontdoorConfig {
        cert_file: Some(certificate),
        key_file: Some(key),
        ..config
    })
    .await?;
    door.set(KEYS, Behaviour::Serve(b"{}".to_vec()));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
    let config = rustls::ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("oic.example.com")?;
    let stream = TcpStream::connect(door.address).await?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    assert_eq!(exchange(stream, Method::GET, KEYS).await?.status(), StatusCode::OK);
    Ok(())
}
