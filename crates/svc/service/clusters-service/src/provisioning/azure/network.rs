//! Network resources in the managed resource group.

use aro_cloud::resources::{
    Frontend, FrontendAddress, LoadBalancerSpec, NsgSpec, OutboundRule, PublicIpSpec,
};
use aro_control::saga::StepError;

use super::{Azure, step};
use crate::provisioning::infrastructure::Egress;
use crate::provisioning::target::Target;

/// Ports of each node for connections to the internet; the same in all clusters, so that pools can grow.
const PORTS: u32 = 1024;
const IDLE_MINUTES: u32 = 4;

impl Azure {
    /// A public address, and a load balancer with an outbound rule over it. HyperShift puts nodes into its pool.
    pub(super) async fn make_egress(&self, target: &Target) -> Result<Egress, StepError> {
        let arm = self.customer(target);
        let (address_id, balancer_id) = (target.egress_address(), target.load_balancer());
        let spec = PublicIpSpec {
            location: target.location.clone(),
            tags: target.tags(),
            ..PublicIpSpec::default()
        };
        let address = arm.ensure_public_ip(&address_id, &spec).await.map_err(|error| step(&error))?;
        let address = address.properties.ip_address;
        let address =
            address.ok_or_else(|| StepError::retry(format!("no address is allocated yet: {address_id}")))?;
        let name = target.infra_id.clone();
        let spec = LoadBalancerSpec {
            location: target.location.clone(),
            frontends: vec![Frontend {
                name: name.clone(),
                address: FrontendAddress::PublicIp(address_id.clone()),
            }],
            pools: vec![name.clone()],
            outbound: Some(OutboundRule {
                name: name.clone(),
                pool: name.clone(),
                frontends: vec![name],
                ports: PORTS,
                idle_minutes: IDLE_MINUTES,
            }),
            tags: target.tags(),
        };
        arm.ensure_load_balancer(&balancer_id, &spec).await.map_err(|error| step(&error))?;
        Ok(Egress { load_balancer: balancer_id.to_string(), address_id: address_id.to_string(), address })
    }

    /// The security group for subnets that the customer did not give one.
    pub(super) async fn make_nsg(&self, target: &Target) -> Result<(), StepError> {
        let spec = NsgSpec { location: target.location.clone(), rules: Vec::new(), tags: target.tags() };
        let made = self.customer(target).ensure_nsg(&target.managed_nsg(), &spec).await;
        made.map(drop).map_err(|error| step(&error))
    }
}
