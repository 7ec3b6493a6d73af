//! Checks of what a node pool needs of the customer's subscription.

use aro_arm::ResourceId;
use aro_control::saga::StepError;
use aro_ocm::NodePool;
use serde::Deserialize;

use super::{Azure, step};
use crate::provisioning::target::Target;

/// `Microsoft.Compute/locations/usages`.
const USAGES: &str = "2024-07-01";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    name: UsageName,
    current_value: u64,
    limit: u64,
}

#[derive(Deserialize)]
struct UsageName {
    value: String,
}

impl Azure {
    pub(super) async fn check_machines(&self, target: &Target, pool: &NodePool) -> Result<(), StepError> {
        let arm = self.customer(target);
        let subnet = pool.subnet.as_deref().filter(|subnet| !subnet.is_empty());
        if let Some(text) = subnet {
            let id = ResourceId::parse(text)
                .map_err(|error| StepError::terminal(format!("subnet `{text}`: {error}")))?;
            if arm.find_subnet(&id).await.map_err(|error| step(&error))?.is_none() {
                return Err(StepError::terminal(format!("subnet not found: {id}")));
            }
        }
        let machines = match &pool.autoscaling {
            Some(bounds) => bounds.min_replica.unwrap_or_default(),
            None => pool.replicas.unwrap_or_default(),
        };
        let size =
            pool.azure_node_pool.as_ref().and_then(|azure| azure.vm_size.as_deref()).unwrap_or_default();
        let Some(cores) = cores_of(size) else { return Ok(()) };
        let wanted = cores * u64::try_from(machines).unwrap_or_default();
        let (subscription, location) = (&target.subscription, &target.location);
        let path =
            format!("/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}/usages");
        let usages: Vec<Usage> = arm.list(&path, USAGES, &[]).await.map_err(|error| step(&error))?;
        let total = usages.iter().find(|usage| usage.name.value.eq_ignore_ascii_case("cores"));
        match total {
            Some(Usage { current_value, limit, .. }) if current_value + wanted > *limit => {
                Err(StepError::terminal(format!(
                    "quota of cores in {location} of subscription {subscription} is {limit}, {current_value} are in use, and {machines} machines of {size} need {wanted}"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The cores that a size counts for, which its name begins with: `Standard_D8s_v3` has 8.
fn cores_of(size: &str) -> Option<u64> {
    let family = size.split('_').nth(1)?;
    let digits = family.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_size_begins_with_its_cores() {
        let sizes = [("Standard_D8s_v3", 8), ("Standard_E96bds_v5", 96), ("Standard_NC40ads_H100_v5", 40)];
        for (size, cores) in sizes {
            assert_eq!(cores_of(size), Some(cores), "{size}");
        }
        assert_eq!(cores_of("odd"), None);
        assert_eq!(cores_of("Standard_"), None);
    }
}
