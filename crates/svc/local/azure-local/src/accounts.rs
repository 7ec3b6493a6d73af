//! The accounts that a new cloud has: the service's tenant, a customer's tenant with an empty subscription, and the customer's
//! service principal, which owns that subscription.
//!
//! The principal's secret is made once and written to a file for its owner alone; the directory keeps a digest only.

use std::io;
use std::path::Path;

use aro_azure_local_directory::{ApplicationSpec, Directory, Tenant};
use aro_azure_local_engine::Cloud;
use aro_azure_local_engine::authorization::Assignment;
use aro_base::{Secret, Timestamp};
use aro_runtime::{Fault, RunError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::AzureLocalConfig;

/// The file with the customer's credentials.
pub(crate) const FILE: &str = "customer.json";
/// The role `Owner`.
const OWNER: &str = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635";

/// What a customer needs to log in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomerAccount {
    pub tenant_id: Uuid,
    pub subscription_id: Uuid,
    pub client_id: Uuid,
    /// Only in the file and in the environment of the user's shell.
    pub client_secret: String,
}

impl CustomerAccount {
    /// Reads the account that a cloud wrote into its directory.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let text = std::fs::read(dir.join(FILE))?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }
}

fn guid(text: &str) -> Result<Uuid, RunError> {
    Uuid::try_parse(text).map_err(|error| Fault::caused(format!("`{text}` is not a GUID"), error))
}

/// Makes sure that tenants, subscriptions and the customer's principal exist.
pub(crate) async fn ensure(
    config: &AzureLocalConfig,
    directory: &Directory,
    cloud: &Cloud,
    dir: &Path,
) -> Result<(), RunError> {
    let (service, customer) = (guid(&config.service_tenant)?, guid(&config.customer_tenant)?);
    for (id, name, domain) in [
        (service, "Service", "service.azure-local.test"),
        (customer, "Customer", "customer.azure-local.test"),
    ] {
        let tenant = Tenant { id, display_name: name.to_owned(), domains: vec![domain.to_owned()] };
        directory.ensure_tenant(tenant).await.map_err(|error| Fault::caused("create a tenant", error))?;
    }
    for (subscription, name, tenant) in [
        (&config.service_subscription, "hcp-dev-svc", service),
        (&config.customer_subscription, "customer", customer),
    ] {
        let made = cloud.ensure_subscription(subscription, name, &tenant.to_string()).await;
        made.map_err(|failure| Fault::new(format!("create the subscription {subscription}: {failure:?}")))?;
    }
    let account = account(config, customer, dir).await?;
    let mut spec = ApplicationSpec::new(customer, "customer");
    spec.app_id = Some(account.client_id);
    spec.secrets = vec![Secret::new(account.client_secret.clone())];
    spec.directory_writer = true;
    let application = directory
        .ensure_application(spec)
        .await
        .map_err(|error| Fault::caused("create the customer's principal", error))?;
    let scope = format!("/subscriptions/{}", config.customer_subscription.to_lowercase());
    cloud.grants().assign(Assignment {
        id: format!("{scope}/providers/microsoft.authorization/roleassignments/{customer}"),
        scope,
        role: OWNER.to_owned(),
        principal: application.principal_id.to_string(),
        effective: Timestamp::UNIX_EPOCH,
    });
    Ok(())
}

/// The customer's account: as it was written before, or a new one.
async fn account(config: &AzureLocalConfig, tenant: Uuid, dir: &Path) -> Result<CustomerAccount, RunError> {
    let dir = dir.to_owned();
    let subscription = guid(&config.customer_subscription)?;
    let made = tokio::task::spawn_blocking(move || match CustomerAccount::read(&dir) {
        Ok(account) if account.tenant_id == tenant && account.subscription_id == subscription => Ok(account),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => {
            let account = CustomerAccount {
                tenant_id: tenant,
                subscription_id: subscription,
                client_id: Uuid::new_v4(),
                client_secret: format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
            };
            let text = serde_json::to_vec_pretty(&account).map_err(io::Error::other)?;
            aro_files::replace(&dir.join(FILE), &text)?;
            Ok(account)
        }
    });
    let made = made.await.map_err(|error| Fault::caused("make the customer's account", error))?;
    made.map_err(|error| Fault::caused("make the customer's account", error))
}
