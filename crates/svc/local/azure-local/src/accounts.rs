//! The accounts that a cloud has from the start: the service's tenant with its subscriptions, a customer's tenant with an
//! empty subscription, and a service principal in each that owns the subscriptions of its tenant.
//!
//! The service's principal stands for every identity of the service, as in the development environments of the service: it
//! may also read and write secrets and blobs in its subscriptions. The first-party application has a principal in every
//! tenant; in the customer's subscription it has the rights that the registration of the resource provider grants, and it
//! alone may call the data plane of managed identities.
//!
//! Secrets and the customer's certificate are made once and written to files for their owner alone; the directory keeps
//! digests and public keys only. Ownership is a role assignment like any other. It is made once: the file of an account
//! records for which subscriptions, so that one that a user deletes stays deleted.

mod certificate;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use aro_azure_local_directory::{Application, ApplicationSpec, Directory, Tenant};
use aro_azure_local_engine::Cloud;
use aro_base::{Secret, SharedClock};
use aro_runtime::{Fault, RunError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::AzureLocalConfig;

/// The file with the customer's credentials.
const CUSTOMER: &str = "customer.json";
/// The file with the service's credentials.
const SERVICE: &str = "service.json";
/// The file with the credentials of the first-party application.
const FIRST_PARTY: &str = "first-party.json";
/// The role `Owner`.
const OWNER: &str = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635";
/// What the service's principal needs beside `Owner`, which has no access to data: `Key Vault Administrator` and
/// `Storage Blob Data Contributor`.
const DATA_ROLES: [&str; 2] =
    ["00482a5a-887f-4fb3-b363-3b7fe8e74483", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"];

/// What a customer needs to log in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomerAccount {
    pub tenant_id: Uuid,
    pub subscription_id: Uuid,
    pub client_id: Uuid,
    /// Only in the file and in the environment of the user's shell.
    pub client_secret: String,
    /// The subscriptions that it was made the owner of.
    #[serde(default)]
    owner_of: BTreeSet<Uuid>,
}

/// What the service needs to log in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccount {
    pub tenant_id: Uuid,
    pub client_id: Uuid,
    /// Only in the file.
    pub client_secret: String,
    /// The subscriptions that it was made the owner of.
    #[serde(default)]
    owner_of: BTreeSet<Uuid>,
}

/// What the first-party application needs to log in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstPartyAccount {
    /// The tenant that the application is registered in.
    pub tenant_id: Uuid,
    pub client_id: Uuid,
    /// Only in the file.
    pub client_secret: String,
    /// The subscriptions in which it was granted its rights.
    #[serde(default)]
    granted_in: BTreeSet<Uuid>,
    /// The subscriptions in which the service's principal was granted access to data.
    #[serde(default)]
    service_data_in: BTreeSet<Uuid>,
}

impl FirstPartyAccount {
    /// The audience of tokens for the data plane of managed identities.
    pub const IDENTITY_AUDIENCE: &'static str = "https://dummy.org";

    /// Reads the account that a cloud wrote into its directory.
    pub fn read(dir: &Path) -> io::Result<Self> {
        read(&dir.join(FIRST_PARTY))
    }

    /// The account in the cloud's directory; made and written if there is none of this tenant. Blocks on the disk.
    pub(crate) fn ensure(dir: &Path, tenant: Uuid) -> io::Result<Self> {
        let wanted = |account: &Self| account.tenant_id == tenant;
        read_or_make(&dir.join(FIRST_PARTY), wanted, || Self {
            tenant_id: tenant,
            client_id: Uuid::new_v4(),
            client_secret: new_secret(),
            granted_in: BTreeSet::new(),
            service_data_in: BTreeSet::new(),
        })
    }
}

impl CustomerAccount {
    /// The file with the customer's certificate and its key (PEM), in the cloud's directory.
    pub const CERTIFICATE: &'static str = "customer.pem";

    /// Reads the account that a cloud wrote into its directory.
    pub fn read(dir: &Path) -> io::Result<Self> {
        read(&dir.join(CUSTOMER))
    }
}

impl ServiceAccount {
    /// Reads the account that a cloud wrote into its directory.
    pub fn read(dir: &Path) -> io::Result<Self> {
        read(&dir.join(SERVICE))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::other)
}

fn write(path: &Path, account: &impl Serialize) -> io::Result<()> {
    aro_files::replace(path, &serde_json::to_vec_pretty(account).map_err(io::Error::other)?)
}

/// The account in a file if it is the wanted one; else a new one.
fn read_or_make<T: DeserializeOwned + Serialize>(
    path: &Path,
    is_wanted: impl Fn(&T) -> bool,
    make: impl FnOnce() -> T,
) -> io::Result<T> {
    match read(path) {
        Ok(account) if is_wanted(&account) => return Ok(account),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let account = make();
    write(path, &account)?;
    Ok(account)
}

fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

pub(crate) fn guid(text: &str) -> Result<Uuid, RunError> {
    Uuid::try_parse(text).map_err(|error| Fault::caused(format!("`{text}` is not a GUID"), error))
}

/// Reads `name=GUID`.
pub(crate) fn parse_subscription(text: &str) -> Result<(String, Uuid), String> {
    let parsed = text.split_once('=').and_then(|(name, id)| Some((name, Uuid::try_parse(id).ok()?)));
    let parsed = parsed.filter(|(name, _)| !name.is_empty());
    let (name, id) = parsed.ok_or_else(|| format!("`{text}` is not of the form name=GUID"))?;
    Ok((name.to_owned(), id))
}

/// Makes sure that tenants, subscriptions and both principals exist.
pub(crate) async fn ensure(
    config: &AzureLocalConfig,
    directory: &Directory,
    cloud: &Cloud,
    dir: &Path,
    first_party: FirstPartyAccount,
    clock: &SharedClock,
) -> Result<(), RunError> {
    let (service, customer) = (guid(&config.service_tenant)?, guid(&config.customer_tenant)?);
    for (id, name, domain) in [
        (service, "Service", "service.azure-local.test"),
        (customer, "Customer", "customer.azure-local.test"),
    ] {
        let tenant = Tenant { id, display_name: name.to_owned(), domains: vec![domain.to_owned()] };
        directory.ensure_tenant(tenant).await.map_err(|error| Fault::caused("create a tenant", error))?;
    }
    let parsed = config.service_subscriptions.iter().filter_map(|text| parse_subscription(text).ok());
    let of_service: Vec<(String, Uuid)> = parsed.collect();
    let of_customer = guid(&config.customer_subscription)?;
    ensure_customer(directory, cloud, dir, clock, (customer, of_customer)).await?;
    let principal = ensure_service(directory, cloud, dir, service, &of_service).await?;
    let first_party = ensure_data_access(cloud, dir, first_party, &principal, &of_service).await?;
    ensure_first_party(directory, cloud, dir, first_party, (customer, of_customer)).await
}

/// The application, its principal in every tenant, and its rights in the customer's subscription.
async fn ensure_first_party(
    directory: &Directory,
    cloud: &Cloud,
    dir: &Path,
    mut account: FirstPartyAccount,
    (tenant, subscription): (Uuid, Uuid),
) -> Result<(), RunError> {
    let mut spec = ApplicationSpec::new(account.tenant_id, "Azure Red Hat OpenShift RP");
    spec.app_id = Some(account.client_id);
    spec.secrets = vec![Secret::new(account.client_secret.clone())];
    spec.multi_tenant = true;
    let application = ensure_application(directory, spec).await?;
    if account.granted_in.contains(&subscription) {
        return Ok(());
    }
    let principal = application
        .principal_in(tenant)
        .ok_or_else(|| Fault::new("the first-party application has no principal in the customer's tenant"))?;
    // It writes role assignments in managed resource groups.
    ensure_role(cloud, subscription, principal, OWNER).await?;
    account.granted_in.insert(subscription);
    let path = dir.join(FIRST_PARTY);
    off_runtime(move || write(&path, &account)).await
}

/// Access to secrets and blobs for the service's principal, in the service's subscriptions. Granted once, like ownership.
async fn ensure_data_access(
    cloud: &Cloud,
    dir: &Path,
    mut account: FirstPartyAccount,
    service: &Application,
    subscriptions: &[(String, Uuid)],
) -> Result<FirstPartyAccount, RunError> {
    let all = subscriptions.iter().map(|(_, id)| *id);
    let missing: Vec<Uuid> = all.filter(|id| !account.service_data_in.contains(id)).collect();
    if missing.is_empty() {
        return Ok(account);
    }
    for subscription in missing {
        for role in DATA_ROLES {
            ensure_role(cloud, subscription, service.principal_id, role).await?;
        }
        account.service_data_in.insert(subscription);
    }
    let path = dir.join(FIRST_PARTY);
    let written = account.clone();
    off_runtime(move || write(&path, &written)).await?;
    Ok(account)
}

async fn ensure_customer(
    directory: &Directory,
    cloud: &Cloud,
    dir: &Path,
    clock: &SharedClock,
    (tenant, subscription): (Uuid, Uuid),
) -> Result<(), RunError> {
    ensure_subscription(cloud, "customer", subscription, tenant).await?;
    let (own, now) = (dir.to_owned(), clock.now());
    let (mut account, certificate) = off_runtime(move || {
        let account = read_or_make(
            &own.join(CUSTOMER),
            |account: &CustomerAccount| {
                (account.tenant_id, account.subscription_id) == (tenant, subscription)
            },
            || CustomerAccount {
                tenant_id: tenant,
                subscription_id: subscription,
                client_id: Uuid::new_v4(),
                client_secret: new_secret(),
                owner_of: BTreeSet::new(),
            },
        )?;
        let path = own.join(CustomerAccount::CERTIFICATE);
        Ok((account, certificate::ensure(&path, "customer", now)?))
    })
    .await?;
    let mut spec = ApplicationSpec::new(tenant, "customer");
    spec.app_id = Some(account.client_id);
    spec.secrets = vec![Secret::new(account.client_secret.clone())];
    spec.certificates = vec![certificate];
    spec.directory_writer = true;
    let application = ensure_application(directory, spec).await?;
    if !account.owner_of.contains(&subscription) {
        ensure_owner(cloud, subscription, &application).await?;
        account.owner_of.insert(subscription);
        let path = dir.join(CUSTOMER);
        off_runtime(move || write(&path, &account)).await?;
    }
    Ok(())
}

async fn ensure_service(
    directory: &Directory,
    cloud: &Cloud,
    dir: &Path,
    tenant: Uuid,
    subscriptions: &[(String, Uuid)],
) -> Result<std::sync::Arc<Application>, RunError> {
    for (name, id) in subscriptions {
        ensure_subscription(cloud, name, *id, tenant).await?;
    }
    let path = dir.join(SERVICE);
    let own = path.clone();
    let mut account = off_runtime(move || {
        read_or_make(
            &own,
            |account: &ServiceAccount| account.tenant_id == tenant,
            || ServiceAccount {
                tenant_id: tenant,
                client_id: Uuid::new_v4(),
                client_secret: new_secret(),
                owner_of: BTreeSet::new(),
            },
        )
    })
    .await?;
    let mut spec = ApplicationSpec::new(tenant, "service");
    spec.app_id = Some(account.client_id);
    spec.secrets = vec![Secret::new(account.client_secret.clone())];
    let application = ensure_application(directory, spec).await?;
    let missing: Vec<Uuid> =
        subscriptions.iter().map(|(_, id)| *id).filter(|id| !account.owner_of.contains(id)).collect();
    if missing.is_empty() {
        return Ok(application);
    }
    for subscription in missing {
        ensure_owner(cloud, subscription, &application).await?;
        account.owner_of.insert(subscription);
    }
    off_runtime(move || write(&path, &account)).await?;
    Ok(application)
}

async fn ensure_subscription(cloud: &Cloud, name: &str, id: Uuid, tenant: Uuid) -> Result<(), RunError> {
    let made = cloud.ensure_subscription(&id.to_string(), name, &tenant.to_string()).await;
    made.map(drop).map_err(|failure| Fault::new(format!("create the subscription {name}: {failure:?}")))
}

async fn ensure_application(
    directory: &Directory,
    spec: ApplicationSpec,
) -> Result<std::sync::Arc<Application>, RunError> {
    let what = format!("create the principal of the {}", spec.display_name);
    directory.ensure_application(spec).await.map_err(|error| Fault::caused(what, error))
}

async fn ensure_owner(cloud: &Cloud, subscription: Uuid, owner: &Application) -> Result<(), RunError> {
    ensure_role(cloud, subscription, owner.principal_id, OWNER).await
}

async fn ensure_role(cloud: &Cloud, subscription: Uuid, principal: Uuid, role: &str) -> Result<(), RunError> {
    let made = cloud.ensure_subscription_role(&subscription.to_string(), &principal.to_string(), role).await;
    made.map_err(|failure| {
        Fault::new(format!("assign the role {role} in the subscription {subscription}: {failure:?}"))
    })
}

/// Work on files and keys, off the runtime's threads.
pub(crate) async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, RunError> {
    const WHAT: &str = "keep the cloud's accounts";
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Fault::caused(WHAT, error))?.map_err(|error| Fault::caused(WHAT, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_a_name_and_a_guid() {
        let id = Uuid::from_u128(7);
        assert_eq!(parse_subscription(&format!("hcp-global={id}")), Ok(("hcp-global".to_owned(), id)));
        for wrong in ["", "hcp-global", "hcp-global=", "hcp-global=x", &format!("={id}")] {
            assert!(parse_subscription(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_account_of_another_tenant_is_replaced_and_a_file_that_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SERVICE);
        let make = |tenant: u128| {
            let tenant_id = Uuid::from_u128(tenant);
            let wanted = move |account: &ServiceAccount| account.tenant_id == tenant_id;
            read_or_make(&path, wanted, || ServiceAccount {
                tenant_id,
                client_id: Uuid::new_v4(),
                client_secret: new_secret(),
                owner_of: BTreeSet::new(),
            })
        };
        let first = make(1).unwrap();
        assert_eq!(make(1).unwrap().client_secret, first.client_secret);
        assert_ne!(make(2).unwrap().client_id, first.client_id);
        std::fs::write(&path, "{").unwrap();
        assert!(make(2).is_err());
    }
}
