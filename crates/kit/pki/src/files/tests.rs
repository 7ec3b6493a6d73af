use std::os::unix::fs::symlink;

use aro_base::SignedDuration;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ServerConfig, ServerConnection};
use tempfile::TempDir;

use super::*;
use crate::{Authority, Issued, Leaf, Subject, Usage, Validity};

const NOW: i64 = 1_800_000_000;

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

fn authority() -> Authority {
    Authority::generate("test", Validity::from_now(now(), days(3650))).unwrap()
}

fn issue(authority: &Authority, length: SignedDuration) -> Issued {
    let leaf = Leaf {
        subject: Subject::new("client", ["them"]),
        dns_names: vec!["here.localhost".to_owned()],
        addresses: Vec::new(),
        usage: Usage::Both,
        validity: Validity::from_now(now(), length),
    };
    authority.issue(&leaf).unwrap()
}

/// Files as a mounted secret has them: links through a link to a directory, which is swapped.
struct Mounted {
    dir: TempDir,
    round: usize,
}

impl Mounted {
    fn new(issued: &Issued, authority: &Authority) -> Self {
        let mut mounted = Self { dir: tempfile::tempdir().unwrap(), round: 0 };
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            symlink(format!("..data/{name}"), mounted.dir.path().join(name)).unwrap();
        }
        mounted.swap(&issued.certificate, issued.key.expose(), authority.certificate());
        mounted
    }

    fn swap(&mut self, certificate: &str, key: &str, bundle: &str) {
        self.round += 1;
        let name = format!("..{}", self.round);
        let folder = self.dir.path().join(&name);
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in [("tls.crt", certificate), ("tls.key", key), ("ca.crt", bundle)] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let fresh = self.dir.path().join("..data_tmp");
        symlink(&name, &fresh).unwrap();
        std::fs::rename(&fresh, self.dir.path().join("..data")).unwrap();
    }

    fn paths(&self) -> IdentityPaths {
        let path = |name| self.dir.path().join(name);
        IdentityPaths { certificate: path("tls.crt"), key: path("tls.key"), bundle: Some(path("ca.crt")) }
    }

    fn load(&self) -> Result<Arc<FileIdentity>, FilesError> {
        FileIdentity::load(self.paths(), now()).map(Arc::new)
    }
}

/// The certificate that would be shown.
fn shown(identity: &FileIdentity) -> Vec<u8> {
    identity.loaded().certified.cert[0].to_vec()
}

#[derive(Debug)]
struct Fixed;

impl TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW.unsigned_abs())))
    }
}

/// A handshake in memory, with certificates on both sides.
fn shake(server: &Arc<FileIdentity>, client: &Arc<FileIdentity>) -> Result<(), rustls::Error> {
    let provider = crate::crypto_provider();
    let server = ServerConfig::builder_with_details(provider.clone(), Arc::new(Fixed))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(server.client_verifier())
        .with_cert_resolver(server.clone());
    let client = ClientConfig::builder_with_details(provider, Arc::new(Fixed))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(client.server_verifier())
        .with_client_cert_resolver(client.clone());
    let mut server = ServerConnection::new(Arc::new(server))?;
    let name = ServerName::try_from("here.localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name)?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn rotation_is_adopted_as_a_whole_and_once() {
    let first = authority();
    let issued = issue(&first, days(1));
    let mut mounted = Mounted::new(&issued, &first);
    let identity = mounted.load().unwrap();
    assert_eq!(identity.expires(), now().saturating_add(days(1)).unwrap());
    assert!(!identity.reload(now()).unwrap());
    let old = shown(&identity);

    let second = authority();
    let renewed = issue(&second, days(2));
    mounted.swap(&renewed.certificate, renewed.key.expose(), second.certificate());
    assert_eq!(shown(&identity), old);
    assert!(identity.reload(now()).unwrap());
    assert!(!identity.reload(now()).unwrap());
    assert_ne!(shown(&identity), old);
    assert_eq!(identity.expires(), now().saturating_add(days(2)).unwrap());
}

#[test]
fn handshakes_follow_the_files() {
    let first = authority();
    let mut of_server = Mounted::new(&issue(&first, days(1)), &first);
    let mut of_client = Mounted::new(&issue(&first, days(1)), &first);
    let (server, client) = (of_server.load().unwrap(), of_client.load().unwrap());
    shake(&server, &client).unwrap();

    // The client's authority changes; the server does not know it yet.
    let second = authority();
    let both = format!("{}{}", first.certificate(), second.certificate());
    let renewed = issue(&second, days(1));
    of_client.swap(&renewed.certificate, renewed.key.expose(), &both);
    assert!(client.reload(now()).unwrap());
    shake(&server, &client).unwrap_err();

    // The server reloads its bundle, and keeps its own certificate.
    let own = issue(&first, days(1));
    of_server.swap(&own.certificate, own.key.expose(), &both);
    assert!(server.reload(now()).unwrap());
    assert_eq!(server.roots().unwrap().len(), 2);
    shake(&server, &client).unwrap();

    // The first authority is removed.
    let own = issue(&second, days(1));
    of_server.swap(&own.certificate, own.key.expose(), second.certificate());
    assert!(server.reload(now()).unwrap());
    shake(&server, &client).unwrap();
    let stranger = Mounted::new(&issue(&first, days(1)), &second);
    shake(&server, &stranger.load().unwrap()).unwrap_err();
}

#[test]
fn inconsistent_content_changes_nothing_and_returns_the_reason() {
    let authority = authority();
    let issued = issue(&authority, days(1));
    let mut mounted = Mounted::new(&issued, &authority);
    let identity = mounted.load().unwrap();
    let old = shown(&identity);
    let (certificate, key, bundle) = (&issued.certificate, issued.key.expose(), authority.certificate());
    let other = issue(&authority, days(1));
    let expired = issue(&authority, days(-1));
    let half = |text: &str| text[..text.len() / 2].to_owned();
    let cases: [(&str, &str, &str, &str); 9] = [
        (&half(certificate), key, bundle, "tls.crt` holds no certificate"),
        (certificate, &half(key), bundle, "tls.key` holds no private key"),
        (certificate, key, &half(bundle), "ca.crt` holds no certificate"),
        ("", key, bundle, "tls.crt` holds no certificate"),
        (certificate, "", bundle, "tls.key` holds no private key"),
        (certificate, key, "", "ca.crt` holds no certificate"),
        (key, certificate, bundle, "tls.crt` holds no certificate"),
        (certificate, other.key.expose(), bundle, "is not the one of the certificate"),
        (&expired.certificate, expired.key.expose(), bundle, "expired at"),
    ];
    for (certificate, key, bundle, reason) in cases {
        mounted.swap(certificate, key, bundle);
        // At every reload.
        for _ in 0..2 {
            let error = identity.reload(now()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}, not {reason}");
        }
        assert_eq!(shown(&identity), old);
        assert!(mounted.load().is_err());
    }
    mounted.swap(certificate, key, bundle);
    assert!(!identity.reload(now()).unwrap());
    mounted.swap(&other.certificate, other.key.expose(), bundle);
    assert!(identity.reload(now()).unwrap());
}

#[test]
fn missing_file_is_named() {
    let authority = authority();
    let mounted = Mounted::new(&issue(&authority, days(1)), &authority);
    let identity = mounted.load().unwrap();
    std::fs::remove_file(mounted.dir.path().join("tls.key")).unwrap();
    let error = identity.reload(now()).unwrap_err();
    assert!(error.to_string().ends_with("tls.key`"), "{error}");
    assert!(matches!(error, FilesError::Read { .. }));
}

#[test]
fn peers_are_rejected_without_a_bundle() {
    let authority = authority();
    let mounted = Mounted::new(&issue(&authority, days(1)), &authority);
    let trusting = mounted.load().unwrap();
    let paths = IdentityPaths { bundle: None, ..mounted.paths() };
    let alone = Arc::new(FileIdentity::load(paths, now()).unwrap());
    assert!(alone.roots().is_none());
    shake(&alone, &trusting).unwrap_err();
    shake(&trusting, &alone).unwrap_err();
}

/// The kinds of two handshakes of one client, one after the other.
fn twice(server: ServerConfig, client: &Arc<FileIdentity>) -> Vec<HandshakeKind> {
    let provider = crate::crypto_provider();
    let client = ClientConfig::builder_with_details(provider, Arc::new(Fixed))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(client.server_verifier())
        .with_client_cert_resolver(client.clone());
    let (server, client) = (Arc::new(server), Arc::new(client));
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let mut server = ServerConnection::new(server.clone()).unwrap();
        let name = ServerName::try_from("here.localhost").unwrap();
        let mut client = ClientConnection::new(client.clone(), name).unwrap();
        // Tickets come after the handshake.
        for _ in 0..4 {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            wire.clear();
            server.write_tls(&mut wire).unwrap();
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets().unwrap();
        }
        kinds.extend(server.handshake_kind());
    }
    kinds
}

#[test]
fn session_is_not_resumed_with_an_earlier_certificate() {
    let authority = authority();
    let identity = Mounted::new(&issue(&authority, days(1)), &authority).load().unwrap();
    let mut ours = identity.server_config().unwrap();
    ours.time_provider = Arc::new(Fixed);
    assert_eq!(twice(ours, &identity), [HandshakeKind::Full, HandshakeKind::Full]);

    let usual = rustls::crypto::aws_lc_rs::default_provider();
    let usual = ServerConfig::builder_with_details(Arc::new(usual), Arc::new(Fixed))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(identity.client_verifier())
        .with_cert_resolver(identity.clone());
    assert_eq!(twice(usual, &identity), [HandshakeKind::Full, HandshakeKind::Resumed], "this client would");
}

#[test]
fn bearer_is_valid_up_to_the_last_second_of_its_certificate() {
    let authority = authority();
    let identity = Mounted::new(&issue(&authority, days(1)), &authority).load().unwrap();
    let bearer = crate::Bearer::of_certificate(&shown(&identity)).unwrap();
    assert_eq!(bearer.subject, Subject::new("client", ["them"]));
    assert_eq!(bearer.until, now() + days(1) + SignedDuration::from_secs(1));
    assert!(crate::Bearer::of_certificate(b"nonsense").is_err());
}
