//! Names of a cluster: four records in the region's zone, and a zone of its own that is delegated.

use std::net::Ipv4Addr;

use aro_cloud::resources::{RecordData, RecordSet, Tags};
use aro_control::saga::StepError;

use super::{Azure, gone, step};
use crate::provisioning::infrastructure::Zone;
use crate::provisioning::target::Target;

/// Names that lead to the management cluster's shared ingress.
const SERVICES: [&str; 4] = ["api", "oauth", "konnectivity-server", "ignition-server"];
/// How long resolvers keep them: a shared ingress may get another address.
const TTL: u32 = 300;

impl Azure {
    /// The records of the API server lead to the shared ingress of the management cluster.
    pub(super) async fn publish_records(&self, target: &Target) -> Result<String, StepError> {
        let (arm, address) = (self.service(target), self.ingress_address(target).await?);
        let sets = SERVICES.map(|service| RecordSet {
            name: format!("{service}.{}", target.relative_domain),
            ttl: TTL,
            data: RecordData::A(vec![address]),
            metadata: target.tags(),
        });
        let writes = sets.iter().map(|set| arm.ensure_record_set(&target.regional_zone, set));
        futures::future::try_join_all(writes).await.map_err(|error| step(&error))?;
        Ok(address.to_string())
    }

    /// The address of the shared ingress. It is read anew for each verification, so that records follow it.
    async fn ingress_address(&self, target: &Target) -> Result<Ipv4Addr, StepError> {
        let id = &target.shared_ingress;
        let found = self.service(target).find_public_ip(id).await.map_err(|error| step(&error))?;
        let address = found.and_then(|ip| ip.properties.ip_address).and_then(|ip| ip.parse().ok());
        address.ok_or_else(|| StepError::retry(format!("the shared ingress has no address: {id}")))
    }

    /// The cluster's own zone, and its delegation from the region's.
    pub(super) async fn make_zone(&self, target: &Target) -> Result<Zone, StepError> {
        let zone = self.customer(target).ensure_zone(&target.zone, &target.tags()).await;
        let name_servers = zone.map_err(|error| step(&error))?.properties.name_servers;
        if name_servers.is_empty() {
            return Err(StepError::retry(format!("the zone has no name servers yet: {}", target.zone)));
        }
        let delegation = RecordSet {
            name: format!("aro.{}", target.relative_domain),
            ttl: TTL,
            data: RecordData::Ns(name_servers.clone()),
            metadata: Tags::new(),
        };
        let written = self.service(target).ensure_record_set(&target.regional_zone, &delegation).await;
        written.map_err(|error| step(&error))?;
        Ok(Zone { id: target.zone.to_string(), name_servers })
    }

    pub(super) async fn remove_records(&self, target: &Target) -> Result<(), StepError> {
        let arm = self.service(target);
        let (domain, zone) = (&target.relative_domain, &target.regional_zone);
        let records = SERVICES.map(|service| ("A", format!("{service}.{domain}")));
        let records = records.into_iter().chain([("NS", format!("aro.{domain}"))]);
        let deletions = records.map(|(kind, name)| {
            let arm = arm.clone();
            async move { gone(arm.delete_record_set(zone, kind, &name).await) }
        });
        futures::future::try_join_all(deletions).await.map(drop)
    }
}
