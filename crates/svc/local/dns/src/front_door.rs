//! The zone of Front Door's endpoints, which Azure serves for all tenants: names in the region's zones lead there by CNAME.

use std::sync::Arc;

use aro_cloud_store::{FRONT_DOOR_ADDRESS, FRONT_DOOR_DOMAIN};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record};

use crate::name::{parse_name, relative_name};
use crate::zone::Zone;

/// How long resolvers keep the address, in seconds.
const TTL: u32 = 60;

/// The zone; every endpoint has the same address.
pub(crate) fn zone() -> Option<Arc<Zone>> {
    let origin = parse_name(FRONT_DOOR_DOMAIN)?;
    let any = relative_name("*", &origin)?;
    let record = Record::from_rdata(any, TTL, RData::A(A(FRONT_DOOR_ADDRESS)));
    Some(Arc::new(Zone::new(origin, &[], [vec![record]])))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use hickory_proto::rr::rdata::CNAME;

    use super::*;
    use crate::zone::Zones;

    #[test]
    fn a_name_that_leads_to_an_endpoint_has_its_address() {
        let origin = parse_name("oic.example.com").unwrap();
        let target = parse_name("arohcpdev.azurefd.net").unwrap();
        let alias = Record::from_rdata(
            parse_name("westus3.oic.example.com").unwrap(),
            3600,
            RData::CNAME(CNAME(target)),
        );
        let own = Arc::new(Zone::new(origin, &[], [vec![alias]]));
        let zones = Zones::new([own]).with(zone());
        let expected = Some(vec![IpAddr::V4(FRONT_DOOR_ADDRESS)]);
        assert_eq!(zones.lookup("westus3.oic.example.com"), expected);
        assert_eq!(zones.lookup("other.azurefd.net"), expected);
        assert_eq!(zones.lookup("azurefd.net"), None);
    }
}
