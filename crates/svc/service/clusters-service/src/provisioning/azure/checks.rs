//! Checks of what the customer has to provide, before anything is made.

use std::collections::BTreeMap;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_base::{Class, Classify as _};
use aro_cloud::resources::Resource;
use aro_cloud::{AccessRequest, ArmClient, Decision, Subject, api_version};
use aro_control::saga::StepError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

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
        let (registrations, group, network, (identities, permissions)) = futures::join!(
            registrations(&arm, target),
            group(&arm, target),
            network(&arm, target),
            self.identities(&arm, target),
        );
        [
            ("rp-registration-inflight", registrations),
            ("resource-group-inflight", group),
            ("network-inflight", network),
            ("cluster-managed-identities-inflight", identities),
            ("managed-identities-permissions-inflight", permissions),
        ]
        .map(|(name, result)| Checked { name, failure: result.err() })
        .into()
    }

    /// Whether the identities exist, and whether they may do what their operators do.
    async fn identities(
        &self,
        arm: &ArmClient,
        target: &Target,
    ) -> (Result<(), StepError>, Result<(), StepError>) {
        let all = target.control_plane.iter().chain(&target.data_plane);
        let all = all.map(|(operator, id)| (operator.as_str(), id));
        let all = all.chain(target.service.iter().map(|id| ("service", id)));
        let looks = all.map(|(operator, id)| async move {
            match arm.find_identity(id).await {
                Ok(Some(identity)) => Ok((id.to_lower(), identity.properties.principal_id)),
                Ok(None) => Err(StepError::terminal(format!("identity of {operator} not found: {id}"))),
                Err(error) => Err(step(&error)),
            }
        });
        let (mut principals, mut failures) = (BTreeMap::new(), Vec::new());
        for look in futures::future::join_all(looks).await {
            match look {
                Ok((id, principal)) => {
                    principals.insert(id, principal);
                }
                Err(error) => failures.push(Err(error)),
            }
        }
        (first_failure(failures), self.permissions(target, &principals).await)
    }

    /// Whether the identities may do on the customer's resources what their operators do there. One that does not exist is the
    /// subject of another check.
    async fn permissions(
        &self,
        target: &Target,
        principals: &BTreeMap<String, Uuid>,
    ) -> Result<(), StepError> {
        let mut questions: Vec<Question<'_>> = Vec::new();
        let mut ask = |operator: &'static str, identity, resource, actions: &'static [&'static str]| {
            if !actions.is_empty() {
                questions.push(Question { operator, identity, resource, actions });
            }
        };
        for operator in &CONTROL_PLANE {
            let Some(identity) = target.control_plane.get(operator.name) else { continue };
            ask(operator.name, identity, &target.subnet, operator.subnet);
            ask(operator.name, identity, &target.vnet, operator.vnet);
            if let Some(nsg) = &target.nsg {
                ask(operator.name, identity, nsg, operator.nsg);
            }
        }
        if let Some(service) = &target.service {
            ask("service", service, &target.subnet, SERVICE_ON_SUBNET);
            if let Some(nsg) = &target.nsg {
                ask("service", service, nsg, SERVICE_ON_NSG);
            }
            for identity in target.data_plane.values() {
                ask("service", service, identity, SERVICE_ON_IDENTITY);
            }
        }
        let answers = questions.iter().filter_map(|question| {
            let principal = principals.get(&question.identity.to_lower())?;
            Some(self.allowed(target, question, principal))
        });
        first_failure(futures::future::join_all(answers).await)
    }

    async fn allowed(
        &self,
        target: &Target,
        question: &Question<'_>,
        principal: &Uuid,
    ) -> Result<(), StepError> {
        let Question { operator, identity, resource, actions } = question;
        let credential = self.access.first_party.in_tenant(&target.tenant);
        let client = self.cloud.check_access(credential, self.access.check_access.clone());
        let request = AccessRequest {
            tenant: target.tenant.clone(),
            subject: Subject { object_id: principal.to_string(), ..Subject::default() },
            resource: (*resource).clone(),
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

/// What an operator's identity has to be permitted on a resource.
struct Question<'a> {
    operator: &'static str,
    identity: &'a ResourceId,
    resource: &'a ResourceId,
    actions: &'static [&'static str],
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
