//! The cloud behind [`Infrastructure`]: Azure, or its local emulation.
//!
//! Two identities act: the service's own in its tenant (zones, vaults, registry, issuer documents), and the first-party
//! application in the customer's (everything in the customer's subscription). The trust of identities on the nodes is written by
//! the cluster's service managed identity.

mod checks;
mod dns;
mod identities;
mod issuer;
mod network;
mod operators;
mod pool;
mod pull_secret;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Class, Classify as _, SharedClock, chain};
use aro_cloud::resources::GroupSpec;
use aro_cloud::{ArmClient, CertificateSpec, Cloud, CloudError, Failure};
use aro_control::saga::StepError;
use aro_ocm::{ClusterId, NodePool, names};
use aro_role::CloudAccess;
use async_trait::async_trait;
use parking_lot::Mutex;

use super::infrastructure::{Checked, Egress, Identities, Infrastructure, Zone};
use super::keys::KeyPool;
use super::target::Target;
use crate::manifests::Secrets;

pub(crate) use issuer::ClusterKeys;

/// How long a call takes at most, before its step's deadline ends it without a cause.
const MAX_CALL: Duration = Duration::from_mins(1);
/// Clusters whose secrets are kept in memory; more are read from the vault again.
const MAX_CACHED: usize = 5000;
/// The authority of certificates. Azure's vaults know public ones by other names.
const CERTIFICATE_ISSUER: &str = "Self";
const CERTIFICATE_MONTHS: u32 = 12;
/// A certificate that its authority has not issued yet.
const CERTIFICATE_WAIT: Duration = Duration::from_secs(2);

/// The cloud.
pub(crate) struct Azure {
    access: CloudAccess,
    /// The client whose calls end before a step's deadline.
    cloud: Cloud,
    keys: KeyPool,
    clock: SharedClock,
    cache: Mutex<HashMap<ClusterId, Arc<Secrets>>>,
    operation_poll: Duration,
}

impl Azure {
    /// The cloud of a role. `deadline` is that of a step.
    pub(crate) fn new(access: CloudAccess, keys: KeyPool, deadline: Duration, clock: SharedClock) -> Self {
        // A call ends before its step, so that the step knows the cause.
        let cloud = access.cloud.with_deadline((deadline * 4 / 5).min(MAX_CALL));
        Self { access, cloud, keys, clock, cache: Mutex::default(), operation_poll: Duration::from_secs(1) }
    }

    /// Resource Manager in the customer's subscription.
    fn customer(&self, target: &Target) -> ArmClient {
        let arm = self.cloud.arm(self.access.first_party.in_tenant(&target.tenant));
        correlated(&arm, target)
    }

    /// Resource Manager in the service's subscriptions.
    fn service(&self, target: &Target) -> ArmClient {
        correlated(&self.cloud.arm(self.access.service.clone()), target)
    }

    fn certificates(&self, target: &Target) -> aro_cloud::Certificates {
        self.cloud.certificates(self.access.service.clone(), target.certificates_vault.clone())
    }

    fn vault(&self, vault: &url::Url) -> aro_cloud::Secrets {
        self.cloud.secrets(self.access.service.clone(), vault.clone())
    }
}

fn correlated(arm: &ArmClient, target: &Target) -> ArmClient {
    match &target.correlation_id {
        Some(id) => arm.with_correlation_id(id.clone()),
        None => arm.clone(),
    }
}

/// A failed call as a failed step. What a customer or an operator may still repair is repeated until the deadline.
fn step(error: &CloudError) -> StepError {
    // Without the correlation id: the same cause has the same text at every attempt.
    let cause = match error.failure() {
        Failure::Throttled(_) => "throttled: the subscription's request quota is used up".to_owned(),
        failure => chain(failure).to_string(),
    };
    let text = format!("{} {}: {cause}", error.method(), error.target());
    let failed = StepError::retry(text).with_class(error.class());
    match error.failure() {
        // A role that was just assigned, or that the customer has yet to assign.
        _ if error.is_forbidden() => failed.with_class(Class::Wait(Duration::from_secs(1))),
        Failure::Throttled(wait) => failed.with_class(Class::Wait((*wait).min(Duration::from_secs(5)))),
        _ => match error.class() {
            // A service may ask for more time than the step has.
            Class::Wait(wait) => failed.with_class(Class::Wait(wait.min(Duration::from_secs(5)))),
            _ => failed,
        },
    }
}

/// For deletions: what is in a place that is gone is gone.
fn gone(result: Result<(), CloudError>) -> Result<(), StepError> {
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.code() == Some("SubscriptionNotFound") => Ok(()),
        // The tenant, with every subscription in it.
        Err(error) if matches!(error.failure(), Failure::Credential(refused) if refused.is_unknown_tenant()) => {
            Ok(())
        }
        Err(error) => Err(step(&error)),
    }
}

#[async_trait]
impl Infrastructure for Azure {
    async fn check(&self, target: &Target) -> Vec<Checked> {
        self.check_all(target).await
    }

    async fn check_pool(&self, target: &Target, pool: &NodePool) -> Result<(), StepError> {
        self.check_machines(target, pool).await
    }

    async fn ensure_group(&self, target: &Target) -> Result<String, StepError> {
        let spec = GroupSpec {
            location: target.location.clone(),
            managed_by: Some(target.arm_id.clone()),
            tags: target.tags(),
        };
        let arm = self.customer(target);
        let group = arm.ensure_resource_group(&target.subscription, &target.managed_group, &spec).await;
        Ok(group.map_err(|error| step(&error))?.id.to_string())
    }

    async fn ensure_identities(&self, target: &Target) -> Result<Identities, StepError> {
        self.resolve_identities(target).await
    }

    async fn ensure_issuer(&self, target: &Target) -> Result<String, StepError> {
        self.publish_issuer(target).await
    }

    async fn ensure_pull_secret(&self, target: &Target) -> Result<String, StepError> {
        self.make_pull_secret(target).await
    }

    async fn ensure_certificates(&self, target: &Target) -> Result<BTreeMap<String, String>, StepError> {
        let host = names::api_host(&target.domain_prefix, &target.base_domain);
        let apps = format!("*.apps.{}", names::delegated_zone(&target.domain_prefix, &target.base_domain));
        let wanted =
            [("api", target.api_certificate(), host), ("ingress", target.ingress_certificate(), apps)];
        let client = self.certificates(target);
        let requests = wanted.map(|(purpose, name, host)| {
            let client = client.clone();
            let spec = CertificateSpec {
                issuer: CERTIFICATE_ISSUER.to_owned(),
                // A common name has at most 64 characters.
                common_name: if host.len() <= 64 { host.clone() } else { target.infra_id.clone() },
                dns_names: vec![host],
                months: CERTIFICATE_MONTHS,
                tags: target.tags(),
            };
            async move {
                match client.ensure(&name, &spec).await {
                    Ok(true) => Ok((purpose.to_owned(), name)),
                    Ok(false) => Err(StepError::wait(
                        format!("certificate {name} is not issued yet"),
                        CERTIFICATE_WAIT,
                    )),
                    Err(error) => Err(step(&error)),
                }
            }
        });
        Ok(futures::future::try_join_all(requests).await?.into_iter().collect())
    }

    async fn ensure_records(&self, target: &Target) -> Result<String, StepError> {
        self.publish_records(target).await
    }

    async fn ensure_roles(&self, target: &Target, identities: &Identities) -> Result<Vec<String>, StepError> {
        self.assign_roles(target, identities).await
    }

    async fn ensure_egress(&self, target: &Target) -> Result<Egress, StepError> {
        self.make_egress(target).await
    }

    async fn ensure_zone(&self, target: &Target) -> Result<Zone, StepError> {
        self.make_zone(target).await
    }

    async fn ensure_nsg(&self, target: &Target) -> Result<(), StepError> {
        self.make_nsg(target).await
    }

    async fn ensure_federation(&self, target: &Target) -> Result<(), StepError> {
        self.trust_issuer(target).await
    }

    async fn secrets(&self, target: &Target) -> Result<Secrets, StepError> {
        if let Some(known) = self.cache.lock().get(&target.id).cloned() {
            return Ok((*known).clone());
        }
        let (keys, pull_secret) = futures::try_join!(self.read_keys(target), self.read_pull_secret(target))?;
        let secrets =
            Secrets { pull_secret, ssh_key: keys.nodes_public, service_account_key: keys.service_account };
        let mut cache = self.cache.lock();
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(target.id.clone(), Arc::new(secrets.clone()));
        Ok(secrets)
    }

    async fn delete_group(&self, target: &Target) -> Result<(), StepError> {
        let arm = self.customer(target);
        gone(arm.delete_resource_group(&target.subscription, &target.managed_group).await)?;
        // The deletion is believed when nothing is found any more.
        match arm.find_resource_group(&target.subscription, &target.managed_group).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(StepError::wait(
                format!("{} is being deleted", target.managed_group_id()),
                self.operation_poll,
            )),
            Err(error) => gone(Err(error)),
        }
    }

    async fn delete_identities(&self, target: &Target) -> Result<(), StepError> {
        let vault = self.vault(&target.identities_vault);
        let secrets = target.control_plane.keys().map(|operator| {
            let (vault, name) = (vault.clone(), target.identity_secret(operator));
            async move { gone(vault.delete(&name).await) }
        });
        futures::future::try_join_all(secrets).await.map(drop)
    }

    async fn delete_issuer(&self, target: &Target) -> Result<(), StepError> {
        self.cache.lock().remove(&target.id);
        self.withdraw_issuer(target).await
    }

    async fn delete_pull_secret(&self, target: &Target) -> Result<(), StepError> {
        self.cache.lock().remove(&target.id);
        self.remove_pull_secret(target).await
    }

    async fn delete_certificates(&self, target: &Target) -> Result<(), StepError> {
        let client = self.certificates(target);
        let names = [target.api_certificate(), target.ingress_certificate()];
        let deletions = names.iter().map(|name| client.delete(name));
        for result in futures::future::join_all(deletions).await {
            gone(result)?;
        }
        Ok(())
    }

    async fn delete_records(&self, target: &Target) -> Result<(), StepError> {
        self.remove_records(target).await
    }

    async fn delete_federation(&self, target: &Target) -> Result<(), StepError> {
        self.withdraw_trust(target).await
    }
}
