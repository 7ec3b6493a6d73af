//! Federated credentials: the directory gets the whole set of an identity after every change of one.

use aro_arm::ResourceId;
use aro_arm_server::Failure;
use serde_json::Value;

use crate::cloud::{Cloud, property};
use crate::directory::FederatedCredential;

impl Cloud {
    /// Brings the directory in step with the documents of an identity's credentials.
    pub(crate) async fn sync_credentials(&self, credential: &ResourceId) -> Result<(), Failure> {
        let Some(identity) = credential.parent() else { return Ok(()) };
        let Ok(subscription) = self.subscription(identity.subscription().unwrap_or_default()) else {
            return Ok(());
        };
        let below =
            self.below(identity.subscription(), &format!("{identity}/federatedIdentityCredentials/")).await?;
        let credentials = below.iter().map(|(_, id, stored)| {
            let audiences = stored.value.properties().and_then(|properties| properties.get("audiences"));
            let audiences = audiences.and_then(Value::as_array).into_iter().flatten();
            FederatedCredential {
                name: id.name().to_owned(),
                issuer: property(&stored.value, "issuer").to_owned(),
                subject: property(&stored.value, "subject").to_owned(),
                audiences: audiences.filter_map(Value::as_str).map(str::to_owned).collect(),
            }
        });
        let (tenant, id) = (subscription.tenant, identity.to_lower());
        self.0.directory.set_federated_credentials(&tenant, &id, credentials.collect()).await?;
        Ok(())
    }
}
