//! Checks of what the customer has to provide, before anything is made.

use std::time::Duration;

use aro_arm::ResourceId;
use aro_base::{Class, Classify as _};
use aro_cloud::resources::Resource;
use aro_cloud::{AccessRequest, ArmClient, Decision, Subject, api_version};
use aro_control::saga::StepError;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::operators::{CONTROL_PLANE, SERVICE_ON_IDENTITY, SERVICE_ON_NSG, SERVICE_ON_SUBNET};
use super::{Azure, step};
use crate::provisioning::infrastructure::Checked;
use crate::provisioning::target::Target;

/// Providers that must be registered in the subscription.
const PROVIDERS: [&str; 4] =
    ["Microsoft.Authorization", "Microsoft.Compute", "Microsoft.Network", "Microsoft.Storage"];
/// Between two looks at permissions that are missing: a role assignment may still be made.
const PERMISSION_WAIT: Duration = Duration::from_secs(1);

impl Azure {
    /// All checks, at once.
    pub(super) async fn check_all(&self, target: &Target) -> Vec<Checked> {
        let arm = self.customer(target);
        let checks: [(&'static str, BoxFuture<'_, Result<(), StepError>>); 5] = [
            ("rp-registration-inflight", registrations(&arm, target).boxed()),
            ("resource-group-inflight", group(&arm, target).boxed()),
            ("network-inflight", network(&arm, target).boxed()),
            ("cluster-managed-identities-inflight", self.identities_exist(&arm, target).boxed()),
            ("managed-identities-permissions-inflight", self.permissions(&arm, target).boxed()),
        ];
        let checks = checks.map(|(name, check)| async move { Checked { name, failure: check.await.err() } });
        futures::future::join_all(checks).await
    }

    async fn identities_exist(&self, arm: &ArmClient, target: &Target) -> Result<(), StepError> {
        let all = target.control_plane.iter().chain(&target.data_plane);
        let all = all.map(|(operator, id)| (operator.as_str(), id));
        let all = all.chain(target.service.iter().map(|id| ("service", id)));
        let looks = all.map(|(operator, id)| async move {
            match arm.find_identity(id).await {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err(StepError::terminal(format!("identity of {operator} not found: {id}"))),
                Err(error) => Err(step(&error)),
            }
        });
        first_failure(futures::future::join_all(looks).await)
    }

    /// Whether the identities may do on the customer's resources what their operators do there.
    async fn permissions(&self, arm: &ArmClient, target: &Target) -> Result<(), StepError> {
        let mut questions: Vec<(String, ResourceId, ResourceId, Vec<&'static str>)> = Vec::new();
        for operator in &CONTROL_PLANE {
            let Some(identity) = target.control_plane.get(operator.name) else { continue };
            let mut ask = |resource: &ResourceId, actions: &[&'static str]| {
                if !actions.is_empty() {
                    questions.push((
                        operator.name.to_owned(),
                        identity.clone(),
                        resource.clone(),
                        actions.to_vec(),
                    ));
                }
            };
            ask(&target.subnet, operator.subnet);
            ask(&target.vnet, operator.vnet);
            if let Some(nsg) = &target.nsg {
                ask(nsg, operator.nsg);
            }
        }
        if let Some(service) = &target.service {
            let mut ask = |resource: &ResourceId, actions: &[&'static str]| {
                questions.push(("service".to_owned(), service.clone(), resource.clone(), actions.to_vec()));
            };
            ask(&target.subnet, &SERVICE_ON_SUBNET);
            if let Some(nsg) = &target.nsg {
                ask(nsg, &SERVICE_ON_NSG);
            }
            for identity in target.data_plane.values() {
                ask(identity, &SERVICE_ON_IDENTITY);
            }
        }
        let answers = questions.into_iter().map(|(operator, identity, resource, actions)| {
            self.allowed(arm, target, operator, identity, resource, actions)
        });
        first_failure(futures::future::join_all(answers).await)
    }

    async fn allowed(
        &self,
        arm: &ArmClient,
        target: &Target,
        operator: String,
        identity: ResourceId,
        resource: ResourceId,
        actions: Vec<&'static str>,
    ) -> Result<(), StepError> {
        // One that does not exist is the subject of another check.
        let Some(principal) = arm.find_identity(&identity).await.map_err(|error| step(&error))? else {
            return Ok(());
        };
        let credential = self.access.first_party.in_tenant(&target.tenant);
        let client = self.cloud.check_access(credential, self.access.check_access.clone());
        let request = AccessRequest {
            tenant: target.tenant.clone(),
            subject: Subject {
                object_id: principal.properties.principal_id.to_string(),
                ..Subject::default()
            },
            resource: resource.clone(),
            actions: actions.iter().map(|action| (*action).to_owned()).collect(),
            data_actions: Vec::new(),
        };
        let decisions = client.check(&request).await.map_err(|error| step(&error))?;
        let missing = decisions.iter().filter(|decision| decision.access_decision != Decision::Allowed);
        let missing: Vec<&str> = missing.map(|decision| decision.action_id.as_str()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        let message =
            format!("identity of {operator} ({identity}) lacks permissions on {resource}: {missing}");
        Err(StepError::wait(message, PERMISSION_WAIT))
    }
}

async fn registrations(arm: &ArmClient, target: &Target) -> Result<(), StepError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Provider {
        namespace: String,
        registration_state: Option<String>,
    }
    let path = format!("/subscriptions/{}/providers", target.subscription);
    let providers: Vec<Provider> =
        arm.list(&path, api_version::RESOURCES, &[]).await.map_err(|error| step(&error))?;
    let registered = |name: &&&str| {
        providers.iter().any(|provider| {
            provider.namespace.eq_ignore_ascii_case(name)
                && provider
                    .registration_state
                    .as_deref()
                    .is_some_and(|state| state.eq_ignore_ascii_case("registered"))
        })
    };
    let missing: Vec<&str> = PROVIDERS.iter().filter(|name| !registered(name)).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let (missing, subscription) = (missing.join(", "), &target.subscription);
    let message = format!("resource providers are not registered in subscription {subscription}: {missing}");
    Err(StepError::wait(message, PERMISSION_WAIT))
}

async fn group(arm: &ArmClient, target: &Target) -> Result<(), StepError> {
    let name = &target.customer_group;
    match arm.find_resource_group(&target.subscription, name).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let subscription = &target.subscription;
            Err(StepError::terminal(format!(
                "resource group {name} not found in subscription {subscription}"
            )))
        }
        Err(error) => Err(step(&error)),
    }
}

/// The subnet exists, is in the cluster's region and has the named security group.
async fn network(arm: &ArmClient, target: &Target) -> Result<(), StepError> {
    let subnet = arm.find_subnet(&target.subnet).await.map_err(|error| step(&error))?;
    let Some(subnet) = subnet else {
        return Err(StepError::terminal(format!("subnet not found: {}", target.subnet)));
    };
    let vnet: Option<Resource<IgnoredAny>> =
        arm.find(&target.vnet, api_version::NETWORK).await.map_err(|error| step(&error))?;
    if let Some(vnet) = vnet.filter(|vnet| !vnet.location.eq_ignore_ascii_case(&target.location)) {
        let (id, is, wanted) = (&target.vnet, vnet.location, &target.location);
        return Err(StepError::terminal(format!(
            "virtual network {id} is in {is}, and the cluster in {wanted}"
        )));
    }
    let Some(nsg) = &target.nsg else { return Ok(()) };
    let found = arm.find_nsg(nsg).await.map_err(|error| step(&error))?;
    if found.is_none() {
        return Err(StepError::terminal(format!("network security group not found: {nsg}")));
    }
    let attached = subnet.properties.network_security_group.as_ref();
    if attached.is_some_and(|attached| attached.id == *nsg) {
        return Ok(());
    }
    let subnet = &target.subnet;
    Err(StepError::terminal(format!("network security group {nsg} is not attached to subnet {subnet}")))
}

/// The worst failure: one that no waiting repairs comes first.
fn first_failure(results: Vec<Result<(), StepError>>) -> Result<(), StepError> {
    let mut failures: Vec<StepError> = results.into_iter().filter_map(Result::err).collect();
    failures.sort_by_key(|error| error.class() != Class::Terminal);
    let Some(first) = failures.first().cloned() else { return Ok(()) };
    let text: Vec<&str> = failures.iter().map(StepError::message).collect();
    let all = text.join("; ");
    Err(match first.class() {
        Class::Terminal => StepError::terminal(all),
        Class::Wait(after) => StepError::wait(all, after),
        Class::Retry => StepError::retry(all),
    })
}
