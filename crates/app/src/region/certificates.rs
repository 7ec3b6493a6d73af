//! The region's own certificates, as Secrets that pods mount.
//!
//! Two authorities per region, kept in the data directory: one vouches for the broker and those who meet there, the server
//! and the agents; the other for Maestro's door and those who come in by it, the sources. Each door believes its own only:
//! so no agent can be a source, whatever it is called. What they vouch for is issued when it is missing and again when a
//! third of its time is left. Where the region runs in a cloud, a vault takes this place: it fills the same files.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use aro_base::{Secret, SharedClock, SignedDuration, Timestamp};
use aro_pki::{Authority, Leaf, PkiError, Subject, Usage, Validity};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::manifests::{AGENT_TLS, BROKER, BROKER_TLS, DOOR_TLS, MAESTRO, SERVER_TLS};

/// How long an authority is good for.
const AUTHORITY: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// How long what it vouches for is.
const LEAF: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How often is looked whether something is about to expire.
pub(super) const LOOK: Duration = Duration::from_hours(1);
/// Where the authority of sources is, in the directory of the other.
const SOURCES: &str = "sources";
/// Who writes the Secrets.
const MANAGER: &str = "aro-region";

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificatesError {
    #[error("keep the region's authorities in `{path}`")]
    Files {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error("write a certificate into its Secret")]
    Kube(#[from] kube::Error),
}

/// The region's authorities.
pub(super) struct Authorities {
    /// Of the broker, and of those who connect to it.
    broker: Authority,
    /// Of Maestro's gRPC door, and of the sources that come in by it.
    sources: Authority,
}

/// Which of them.
#[derive(Clone, Copy)]
enum By {
    Broker,
    Sources,
}

impl Authorities {
    /// Those in a directory; one that is not there is made. Blocks on the disk.
    pub(super) fn load(dir: &Path, clock: &SharedClock) -> Result<Self, CertificatesError> {
        Ok(Self {
            // Where the only one was, when there was one.
            broker: authority(dir, "aro-region", clock)?,
            sources: authority(&dir.join(SOURCES), "aro-region-sources", clock)?,
        })
    }

    fn get(&self, by: By) -> &Authority {
        match by {
            By::Broker => &self.broker,
            By::Sources => &self.sources,
        }
    }
}

/// Whom a certificate is for, who vouches for it, and where it goes.
pub(super) struct Wanted {
    pub secret: &'static str,
    by: By,
    common_name: String,
    dns_names: Vec<String>,
    usage: Usage,
}

/// What the service cluster's pods need.
pub(super) fn of_service_cluster() -> Vec<Wanted> {
    let service = |name: &str| {
        vec![
            format!("{name}.{}.svc", MAESTRO.0),
            format!("{name}.{}.svc.cluster.local", MAESTRO.0),
            "localhost".to_owned(),
        ]
    };
    vec![
        Wanted {
            secret: BROKER_TLS,
            by: By::Broker,
            common_name: BROKER.to_owned(),
            dns_names: service(BROKER),
            usage: Usage::Server,
        },
        // To the broker it is the server `maestro`; to sources it is the door of that name.
        Wanted {
            secret: SERVER_TLS,
            by: By::Broker,
            common_name: "maestro".to_owned(),
            dns_names: Vec::new(),
            usage: Usage::Client,
        },
        Wanted {
            secret: DOOR_TLS,
            by: By::Sources,
            common_name: "maestro".to_owned(),
            dns_names: service(MAESTRO.1),
            usage: Usage::Server,
        },
    ]
}

/// What a management cluster's pods need: to the broker, the agent is the consumer of the cluster's name.
pub(super) fn of_management_cluster(name: &str) -> Vec<Wanted> {
    vec![Wanted {
        secret: AGENT_TLS,
        by: By::Broker,
        common_name: name.to_owned(),
        dns_names: Vec::new(),
        usage: Usage::Client,
    }]
}

/// An authority, made when there is none.
fn authority(dir: &Path, name: &str, clock: &SharedClock) -> Result<Authority, CertificatesError> {
    let (certificate, key) = (dir.join("ca.crt"), dir.join("ca.key"));
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |source| CertificatesError::Files { path, source }
    };
    match (std::fs::read_to_string(&certificate), std::fs::read_to_string(&key)) {
        (Ok(certificate), Ok(key)) => return Ok(Authority::load(&certificate, &Secret::new(key))?),
        (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(dir)(error));
        }
        _ => {}
    }
    std::fs::create_dir_all(dir).map_err(failed(dir))?;
    let made = Authority::generate(name, Validity::from_now(clock.now(), AUTHORITY))?;
    // The key first: a certificate that is there has a key.
    write_whole(&key, made.key().expose(), 0o600).map_err(failed(&key))?;
    write_whole(&certificate, made.certificate(), 0o644).map_err(failed(&certificate))?;
    Ok(made)
}

/// Writes a file that is there with all of its content or not at all, and never readable by more than it should be: a
/// new file takes the place of one that may have been left open to others.
fn write_whole(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let new = path.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    std::fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Issues what is missing, foreign or about to expire.
pub(super) async fn ensure(
    client: &Client,
    authorities: &Authorities,
    wanted: &[Wanted],
    now: Timestamp,
) -> Result<(), CertificatesError> {
    let secrets: Api<SecretObject> = Api::namespaced(client.clone(), MAESTRO.0);
    for one in wanted {
        let authority = authorities.get(one.by);
        let there = secrets.get_opt(one.secret).await?.and_then(|secret| secret.data).unwrap_or_default();
        if is_good(&there, authority, now) {
            continue;
        }
        let issued = authority.issue(&Leaf {
            subject: Subject::new(one.common_name.clone(), Vec::<String>::new()),
            dns_names: one.dns_names.clone(),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            usage: one.usage,
            validity: Validity::from_now(now, LEAF),
        })?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": one.secret, "namespace": MAESTRO.0},
            "stringData": {
                "tls.crt": issued.certificate, "tls.key": issued.key.expose(), "ca.crt": authority.certificate(),
            },
        });
        secrets.patch(one.secret, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&secret)).await?;
        tracing::info!(secret = one.secret, "a certificate was issued");
    }
    Ok(())
}

fn is_good(data: &BTreeMap<String, ByteString>, authority: &Authority, now: Timestamp) -> bool {
    let text = |name: &str| data.get(name).and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    let ours = text("ca.crt") == Some(authority.certificate()) && text("tls.key").is_some();
    let expires = text("tls.crt").and_then(aro_pki::expires);
    let third = LEAF.as_secs() / 3;
    ours && expires.is_some_and(|at| at.duration_since(now) > SignedDuration::from_secs(third))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_authority_is_made_anew_when_half_of_it_is_there_and_its_key_is_nobody_elses() {
        let directory = tempfile::tempdir().unwrap();
        let clock: SharedClock = aro_base::ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let key = directory.path().join("ca.key");
        // Left behind by somebody who stopped in the middle, and open to everybody.
        std::fs::write(&key, "half a ke").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::write(directory.path().join("ca.new"), "rest").unwrap();
        let made = authority(directory.path(), "test", &clock).unwrap();
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        let again = authority(directory.path(), "test", &clock).unwrap();
        assert_eq!(made.certificate(), again.certificate());
    }

    #[test]
    fn a_region_that_had_one_authority_keeps_it_for_the_broker_and_gets_another_for_sources() {
        let directory = tempfile::tempdir().unwrap();
        let clock: SharedClock = aro_base::ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let old = authority(directory.path(), "aro-region", &clock).unwrap();
        let both = Authorities::load(directory.path(), &clock).unwrap();
        assert_eq!(both.broker.certificate(), old.certificate());
        assert_ne!(both.sources.certificate(), old.certificate());
        let again = Authorities::load(directory.path(), &clock).unwrap();
        assert_eq!(again.sources.certificate(), both.sources.certificate());
        let key = directory.path().join(SOURCES).join("ca.key");
        assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn whoever_meets_at_the_broker_is_vouched_for_by_another_than_sources_and_their_door() {
        let by_sources = |all: Vec<Wanted>| -> Vec<&str> {
            let of = all.into_iter().filter(|one| matches!(one.by, By::Sources));
            of.map(|one| one.secret).collect()
        };
        assert_eq!(by_sources(of_service_cluster()), [DOOR_TLS]);
        assert!(by_sources(of_management_cluster("mgmt-1")).is_empty());
    }
}
