//! The region's own certificates, as Secrets that pods mount.
//!
//! Two authorities per region, kept in the data directory: one issues to the broker and its clients, the Maestro server and
//! the agents; the other issues to the Maestro server's gRPC listener and its clients, the sources. Each listener trusts one
//! of them only, so no agent can act as a source, whatever its name. Certificates are issued when they are missing and
//! renewed when a third of their lifetime is left. In a cloud, Key Vault takes this place and fills the same files.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use aro_base::{Secret, SharedClock, SignedDuration, Timestamp};
use aro_pki::{Authority, Leaf, PkiError, Subject, Usage, Validity};
use aro_role::{Certificate, CertificateUsage, Issuer};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// The lifetime of an authority.
const AUTHORITY: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// The lifetime of a certificate.
const LEAF: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How often certificates are checked for renewal.
pub(super) const RENEWAL_CHECK: Duration = Duration::from_hours(1);
/// The directory of the authority for sources, in the directory of the other.
const SOURCES: &str = "sources";
/// The field manager of the Secrets.
const MANAGER: &str = "aro-region";

/// Why certificates could not be issued.
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
    /// Issues to the broker and its clients.
    broker: Authority,
    /// Issues to Maestro's gRPC listener and its sources.
    sources: Authority,
}

impl Authorities {
    /// Loads the authorities in a directory; generates a missing one. Blocks on the disk.
    pub(super) fn load(dir: &Path, clock: &SharedClock) -> Result<Self, CertificatesError> {
        Ok(Self {
            // Regions of the first releases had this one only.
            broker: authority(dir, "aro-region", clock)?,
            sources: authority(&dir.join(SOURCES), "aro-region-sources", clock)?,
        })
    }

    fn get(&self, issuer: Issuer) -> &Authority {
        match issuer {
            Issuer::Broker => &self.broker,
            Issuer::Sources => &self.sources,
        }
    }
}

/// The DNS names of a certificate: its Services, and `localhost` for debug ports.
fn dns_names(namespace: &str, certificate: &Certificate) -> Vec<String> {
    let of =
        |name: &&str| [format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")];
    let mut names: Vec<String> = certificate.services.iter().flat_map(of).collect();
    if !names.is_empty() {
        names.push("localhost".to_owned());
    }
    names
}

/// The authority in a directory; generated when there is none.
fn authority(dir: &Path, name: &str, clock: &SharedClock) -> Result<Authority, CertificatesError> {
    let (certificate, key) = (dir.join("ca.crt"), dir.join("ca.key"));
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |source| CertificatesError::Files { path, source }
    };
    aro_files::take_dir(dir).map_err(failed(dir))?;
    match (std::fs::read_to_string(&certificate), std::fs::read_to_string(&key)) {
        (Ok(certificate), Ok(key)) => return Ok(Authority::load(&certificate, &Secret::new(key))?),
        (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(dir)(error));
        }
        _ => {}
    }
    let made = Authority::generate(name, Validity::from_now(clock.now(), AUTHORITY))?;
    // The key first: a certificate that is there has a key.
    aro_files::replace(&key, made.key().expose().as_bytes()).map_err(failed(&key))?;
    aro_files::replace(&certificate, made.certificate().as_bytes()).map_err(failed(&certificate))?;
    Ok(made)
}

/// Issues the certificates that are missing, of another authority, or about to expire.
pub(super) async fn ensure(
    client: &Client,
    authorities: &Authorities,
    wanted: &[(&'static str, Certificate)],
    now: Timestamp,
) -> Result<(), CertificatesError> {
    for (namespace, certificate) in wanted {
        let secrets: Api<SecretObject> = Api::namespaced(client.clone(), namespace);
        let name = certificate.secret;
        let authority = authorities.get(certificate.issuer);
        let stored = secrets.get_opt(name).await?.and_then(|secret| secret.data).unwrap_or_default();
        if is_good(&stored, authority, now) {
            continue;
        }
        let issued = authority.issue(&Leaf {
            subject: Subject::new(certificate.common_name.clone(), Vec::<String>::new()),
            dns_names: dns_names(namespace, certificate),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            usage: match certificate.usage {
                CertificateUsage::Server => Usage::Server,
                CertificateUsage::Client => Usage::Client,
            },
            validity: Validity::from_now(now, LEAF),
        })?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {
                "tls.crt": issued.certificate, "tls.key": issued.key.expose(), "ca.crt": authority.certificate(),
            },
        });
        secrets.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&secret)).await?;
        tracing::info!(namespace, secret = name, "certificate issued");
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
    fn an_authority_with_half_its_files_is_generated_again_and_its_key_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let clock: SharedClock = aro_base::ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let key = directory.path().join("ca.key");
        // Left behind by a process that stopped in the middle, and readable by all.
        std::fs::write(&key, "half a ke").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::write(directory.path().join("ca.key.new"), "rest").unwrap();
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
    fn a_server_certificate_names_its_services_and_localhost_and_a_client_certificate_no_host() {
        let mut certificate = Certificate {
            secret: "maestro-grpc-tls",
            path: "/etc/aro/grpc-tls",
            issuer: Issuer::Sources,
            common_name: "maestro".to_owned(),
            services: vec!["maestro"],
            usage: CertificateUsage::Server,
        };
        let expected = ["maestro.ns.svc", "maestro.ns.svc.cluster.local", "localhost"];
        assert_eq!(dns_names("ns", &certificate), expected);
        certificate.services.clear();
        assert!(dns_names("ns", &certificate).is_empty());
    }
}
