//! The cloud for roles that need it: the local one of a region, or a configured one for a role that runs alone.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aro_azure_local::{CloudAuthority, FirstPartyAccount, ServiceAccount};
use aro_base::{Secret, SharedClock};
use aro_cloud::{Cloud, CloudConfig, Proof, SetupError};
use aro_net::{Resolve, SystemResolve};
use aro_region_layout::RegionLayout;
use aro_role::{CloudAccess, FirstParty};
use aro_runtime::config::{SecretFile, SecretFileError};
use aro_runtime::{ConfigProblems, Problems, Section};
use url::Url;
use uuid::Uuid;

use crate::AppConfig;

/// Requests a second for one subscription: the local cloud is on this machine and has no quota.
const REQUESTS_PER_SECOND: u32 = 10_000;

aro_runtime::section! {
    /// The identities that a role acts with in the cloud when it is started alone (`aro clusters-service`). A region brings
    /// its own.
    pub struct CloudIdentityConfig in "cloud_identity" {
        /// The tenant of the service.
        pub tenant: Option<String> = None,
        /// The client id of the role's identity in that tenant. Not set: a role that needs the cloud does not start.
        pub client_id: Option<String> = None,
        /// A file with the identity's secret.
        pub secret_file: Option<SecretFile> = None,
        /// A file with a token that is exchanged for one of the identity: workload identity.
        pub token_file: Option<PathBuf> = None,
        /// The client id of the first-party application.
        pub first_party_client_id: Option<String> = None,
        /// A file with the first-party application's secret.
        pub first_party_secret_file: Option<SecretFile> = None,
        /// A file with the first-party application's certificate (PEM); read again when it is rotated.
        pub first_party_certificate_file: Option<PathBuf> = None,
        /// A file with the key of that certificate (PEM).
        pub first_party_key_file: Option<PathBuf> = None,
        /// Where permissions are checked. Not set: `https://<region>.authorization.azure.net`.
        pub check_access: Option<String> = None,
        /// The audience of tokens for the data plane of managed identities.
        pub identity_audience: String = "https://dummy.org".to_owned(),
        /// The stamps of the management clusters, as in the names of their resources.
        pub stamps: Vec<String> = vec!["1".to_owned()],
    }
}

impl Section for CloudIdentityConfig {
    fn examine(&self, problems: &mut Problems) {
        for (key, id) in [
            ("tenant", &self.tenant),
            ("client_id", &self.client_id),
            ("first_party_client_id", &self.first_party_client_id),
        ] {
            if id.as_deref().is_some_and(|id| Uuid::try_parse(id).is_err()) {
                problems.add(key, "must be a GUID");
            }
        }
        if self.check_access.as_deref().is_some_and(|text| Url::parse(text).is_err()) {
            problems.add("check_access", "must be a URL");
        }
        if self.client_id.is_none() {
            return;
        }
        if self.tenant.is_none() {
            problems.add("tenant", "is needed with cloud_identity.client_id");
        }
        if self.secret_file.is_some() == self.token_file.is_some() {
            problems.add("secret_file", "give either it or `cloud_identity.token_file`");
        }
        if self.first_party_client_id.is_none() {
            problems.add("first_party_client_id", "is needed with cloud_identity.client_id");
        }
        let certificate = (self.first_party_certificate_file.is_some(), self.first_party_key_file.is_some());
        if !matches!(
            (self.first_party_secret_file.is_some(), certificate),
            (true, (false, false)) | (false, (true, true))
        ) {
            problems.add(
                "first_party_secret_file",
                "give either it or both `cloud_identity.first_party_certificate_file` and `cloud_identity.first_party_key_file`",
            );
        }
    }
}

/// Why a role has no cloud.
#[derive(Debug, thiserror::Error)]
pub enum CloudAccessError {
    /// Nothing is configured.
    #[error(
        "the role needs the cloud: set cloud_identity.client_id and the keys beside it (docs/config.md), or run it in a region (`aro up`)"
    )]
    NotConfigured,
    /// The accounts of the local cloud are not written yet, or cannot be read.
    #[error("read the accounts of the local cloud")]
    Accounts(#[source] io::Error),
    /// A file with a secret.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The section `[cloud]`.
    #[error("check the configuration of the cloud client")]
    Config(#[from] ConfigProblems),
    /// The client.
    #[error("set up the cloud client")]
    Setup(#[from] SetupError),
    /// The host of permission checks.
    #[error("parse the URL of permission checks")]
    CheckAccess(#[from] url::ParseError),
}

/// The configured cloud.
pub(crate) fn of_config(
    config: &AppConfig,
    resolve: Arc<dyn Resolve>,
    clock: &SharedClock,
) -> Result<CloudAccess, CloudAccessError> {
    let identity = config.loaded.section::<CloudIdentityConfig>()?;
    let (Some(tenant), Some(client_id), Some(first_party)) =
        (&identity.tenant, &identity.client_id, &identity.first_party_client_id)
    else {
        return Err(CloudAccessError::NotConfigured);
    };
    let cloud = Cloud::new(&config.loaded.section::<CloudConfig>()?, resolve, clock.clone())?;
    let proof = match (&identity.secret_file, &identity.token_file) {
        (Some(file), _) => Proof::Secret(file.read()?),
        (None, Some(file)) => Proof::FederatedFile(file.clone()),
        (None, None) => return Err(CloudAccessError::NotConfigured),
    };
    let files = (&identity.first_party_certificate_file, &identity.first_party_key_file);
    let first_party_proof = match (&identity.first_party_secret_file, files) {
        (Some(file), _) => Proof::Secret(file.read()?),
        (None, (Some(certificate), Some(key))) => {
            Proof::CertificateFiles { certificate: certificate.clone(), key: key.clone() }
        }
        (None, _) => return Err(CloudAccessError::NotConfigured),
    };
    let params = config.region.params(Uuid::try_parse(tenant).unwrap_or_default(), identity.stamps.clone());
    let layout = Arc::new(RegionLayout::new(params));
    let check_access = match &identity.check_access {
        Some(url) => Url::parse(url)?,
        None => check_access(&layout)?,
    };
    Ok(CloudAccess {
        service: cloud.application(tenant, client_id, proof),
        first_party: FirstParty::new(cloud.clone(), first_party.as_str(), first_party_proof),
        cloud,
        layout,
        check_access,
        identity_audience: identity.identity_audience.clone(),
    })
}

/// A region's local cloud, once it has written its accounts. Blocks on the disk.
pub(crate) fn of_local_cloud(
    dir: &Path,
    azure_local: SocketAddr,
    layout: &RegionLayout,
    clock: &SharedClock,
) -> Result<CloudAccess, CloudAccessError> {
    let service = ServiceAccount::read(dir).map_err(CloudAccessError::Accounts)?;
    let first_party = FirstPartyAccount::read(dir).map_err(CloudAccessError::Accounts)?;
    let config = CloudConfig {
        connect_to: Some(azure_local),
        ca_file: Some(dir.join(CloudAuthority::CERTIFICATE)),
        requests_per_second: REQUESTS_PER_SECOND,
        ..CloudConfig::default()
    };
    let cloud = Cloud::new(&config.check()?, Arc::new(SystemResolve), clock.clone())?;
    let (tenant, client_id) = (service.tenant_id.to_string(), service.client_id.to_string());
    let proof = Proof::Secret(Secret::new(first_party.client_secret));
    Ok(CloudAccess {
        service: cloud.client_secret(&tenant, &client_id, Secret::new(service.client_secret)),
        first_party: FirstParty::new(cloud.clone(), first_party.client_id.to_string(), proof),
        cloud,
        check_access: check_access(layout)?,
        layout: Arc::new(layout.clone()),
        identity_audience: FirstPartyAccount::IDENTITY_AUDIENCE.to_owned(),
    })
}

/// Where Azure checks permissions in the region.
fn check_access(layout: &RegionLayout) -> Result<Url, url::ParseError> {
    Url::parse(&format!("https://{}.authorization.azure.net", layout.params.location))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl FnOnce(&mut CloudIdentityConfig)) -> String {
        let mut config = CloudIdentityConfig::default();
        change(&mut config);
        config.check().err().map(|problems| problems.to_string()).unwrap_or_default()
    }

    #[test]
    fn an_identity_is_complete_or_absent() {
        assert_eq!(problems(|_| ()), "");
        let found = problems(|config| config.client_id = Some(Uuid::nil().to_string()));
        for key in ["tenant", "secret_file", "first_party_client_id", "first_party_secret_file"] {
            assert!(found.contains(&format!("cloud_identity.{key}")), "{found}");
        }
        assert!(problems(|config| config.tenant = Some("contoso".into())).contains("must be a GUID"));
    }
}
