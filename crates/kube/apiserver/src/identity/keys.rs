//! The keys of one cluster: its authority and what its service accounts' tokens are signed with.

use aro_base::{Secret, SignedDuration, Timestamp};
use aro_pki::{Authority, Issued, Leaf, PkiError, Subject, Usage, Validity};
use serde::{Deserialize, Serialize};

use super::user::MASTERS;

/// What a cluster keeps about itself beside its objects. Written to the log when it is made, and never shown.
#[derive(Serialize, Deserialize)]
struct Kept {
    ca_certificate: String,
    ca_key: String,
    service_account_key: String,
}

/// A cluster's keys.
#[derive(Debug)]
pub struct Keys {
    pub authority: Authority,
    /// ECDSA P-256, PKCS #8 in PEM.
    pub service_account_key: Secret<String>,
}

/// Ten years: an embedded cluster's authority lives as long as its data.
const AUTHORITY: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
const LEAF: SignedDuration = SignedDuration::from_hours(365 * 24);

#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("the cluster's keys cannot be read back")]
    Unreadable(#[source] serde_json::Error),
    #[error("the cluster's keys cannot be made")]
    Make(#[source] PkiError),
}

impl Keys {
    pub fn generate(cluster: &str, now: Timestamp) -> Result<Self, KeysError> {
        let validity = Validity::from_now(now, AUTHORITY);
        let authority =
            Authority::generate(&format!("{cluster} kubernetes"), validity).map_err(KeysError::Make)?;
        // Only a key: the certificate around it is thrown away.
        let signing = Authority::generate("service-accounts", validity).map_err(KeysError::Make)?;
        Ok(Self { authority, service_account_key: signing.key() })
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, KeysError> {
        let kept = Kept {
            ca_certificate: self.authority.certificate().to_owned(),
            ca_key: self.authority.key().expose().clone(),
            service_account_key: self.service_account_key.expose().clone(),
        };
        serde_json::to_vec(&kept).map_err(KeysError::Unreadable)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeysError> {
        let kept: Kept = serde_json::from_slice(bytes).map_err(KeysError::Unreadable)?;
        let authority =
            Authority::load(&kept.ca_certificate, &Secret::new(kept.ca_key)).map_err(KeysError::Make)?;
        Ok(Self { authority, service_account_key: Secret::new(kept.service_account_key) })
    }

    /// The certificate its API server shows.
    pub fn serving(&self, names: Vec<String>, now: Timestamp) -> Result<Issued, KeysError> {
        let addresses =
            vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into(), [10, 0, 0, 1].into()];
        let leaf = Leaf {
            subject: Subject::new("kube-apiserver", [""; 0]),
            dns_names: names,
            addresses,
            usage: Usage::Server,
            validity: Validity::from_now(now, LEAF),
        };
        self.authority.issue(&leaf).map_err(KeysError::Make)
    }

    /// A client certificate for the cluster administrator.
    pub fn admin(&self, now: Timestamp) -> Result<Issued, KeysError> {
        self.client(Subject::new("kubernetes-admin", [MASTERS]), now)
    }

    pub fn client(&self, subject: Subject, now: Timestamp) -> Result<Issued, KeysError> {
        let validity = Validity::from_now(now, LEAF);
        let leaf =
            Leaf { subject, dns_names: Vec::new(), addresses: Vec::new(), usage: Usage::Client, validity };
        self.authority.issue(&leaf).map_err(KeysError::Make)
    }
}
