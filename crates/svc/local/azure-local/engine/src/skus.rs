//! What Compute offers: sizes of virtual machines and kinds of disks, as data. Nothing is made of them yet; clients choose by them
//! and quotas name their families.

use aro_arm_server::{Answer, Failure, paging};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::locations::{LOCATIONS, normalise};
use crate::provider::CloudRequest;
use crate::refusal::Refusal;

/// The api-versions of the list.
pub(crate) const VERSIONS: &[&str] = &["2017-09-01", "2019-04-01", "2021-07-01"];

/// The api-versions of virtual machines, in which clients ask for usages.
pub(crate) const MACHINE_VERSIONS: &[&str] = &[
    "2022-11-01",
    "2023-03-01",
    "2023-07-01",
    "2023-09-01",
    "2024-03-01",
    "2024-07-01",
    "2024-11-01",
    "2025-04-01",
];

/// A size of virtual machines.
struct Size {
    name: &'static str,
    family: &'static str,
    cores: u32,
    memory_gb: &'static str,
    data_disks: u32,
    interfaces: u32,
}

const fn size(
    name: &'static str,
    family: &'static str,
    cores: u32,
    memory_gb: &'static str,
    data_disks: u32,
    interfaces: u32,
) -> Size {
    Size { name, family, cores, memory_gb, data_disks, interfaces }
}

const SIZES: &[Size] = &[
    size("Standard_D2s_v3", "standardDSv3Family", 2, "8", 4, 2),
    size("Standard_D4s_v3", "standardDSv3Family", 4, "16", 8, 2),
    size("Standard_D8s_v3", "standardDSv3Family", 8, "32", 16, 4),
    size("Standard_D16s_v3", "standardDSv3Family", 16, "64", 32, 8),
    size("Standard_D32s_v3", "standardDSv3Family", 32, "128", 32, 8),
    size("Standard_D4s_v5", "standardDSv5Family", 4, "16", 8, 2),
    size("Standard_D8s_v5", "standardDSv5Family", 8, "32", 16, 4),
    size("Standard_D16s_v5", "standardDSv5Family", 16, "64", 32, 8),
    size("Standard_D32s_v5", "standardDSv5Family", 32, "128", 32, 8),
    size("Standard_D4as_v5", "standardDASv5Family", 4, "16", 8, 2),
    size("Standard_D8as_v5", "standardDASv5Family", 8, "32", 16, 4),
    size("Standard_D16as_v5", "standardDASv5Family", 16, "64", 32, 8),
    size("Standard_E4s_v3", "standardESv3Family", 4, "32", 8, 2),
    size("Standard_E8s_v3", "standardESv3Family", 8, "64", 16, 4),
    size("Standard_E16s_v3", "standardESv3Family", 16, "128", 32, 8),
    size("Standard_E8s_v5", "standardESv5Family", 8, "64", 16, 4),
    size("Standard_E16s_v5", "standardESv5Family", 16, "128", 32, 8),
    size("Standard_F8s_v2", "standardFSv2Family", 8, "16", 16, 4),
    size("Standard_F16s_v2", "standardFSv2Family", 16, "32", 32, 4),
    size("Standard_L8s_v3", "standardLSv3Family", 8, "64", 16, 4),
    size("Standard_L16s_v3", "standardLSv3Family", 16, "128", 32, 8),
];

const DISKS: &[(&str, &str)] = &[
    ("Standard_LRS", "Standard"),
    ("StandardSSD_LRS", "Standard"),
    ("Premium_LRS", "Premium"),
    ("PremiumV2_LRS", "Premium"),
    ("UltraSSD_LRS", "Ultra"),
];

/// How many cores a subscription may use in a location, of one family and in total.
const FAMILY_CORES: u32 = 350;
const TOTAL_CORES: u32 = 1000;

/// The quotas of cores, all unused: there are no virtual machines yet.
pub(crate) fn core_usages() -> Vec<Value> {
    let usage = |name: &str, label: &str, limit: u32| {
        json!({
            "currentValue": 0, "limit": limit, "unit": "Count",
            "name": {"value": name, "localizedValue": label},
        })
    };
    let mut families: Vec<&str> = SIZES.iter().map(|size| size.family).collect();
    families.dedup();
    let families = families.iter().map(|family| usage(family, &format!("{family} vCPUs"), FAMILY_CORES));
    [usage("cores", "Total Regional vCPUs", TOTAL_CORES)].into_iter().chain(families).collect()
}

/// The location that a filter names (`location eq 'westus3'`).
fn location_of(filter: &str) -> Result<Option<String>, Refusal> {
    let words: Vec<&str> = filter.split_whitespace().collect();
    match words.as_slice() {
        [] => Ok(None),
        [name, operator, value]
            if name.eq_ignore_ascii_case("location") && operator.eq_ignore_ascii_case("eq") =>
        {
            Ok(Some(normalise(value.trim_matches('\''))))
        }
        _ => Err(Refusal::parameter("$filter", "Only \"location eq '<location>'\" is supported.")),
    }
}

impl Cloud {
    /// What Compute offers, in every location or in one.
    pub(crate) fn skus(request: &CloudRequest) -> Result<Answer, Failure> {
        let wanted = location_of(request.query.get("$filter").unwrap_or_default())?;
        let offered = LOCATIONS.iter().map(|(name, ..)| *name);
        let locations: Vec<&str> =
            offered.filter(|name| wanted.as_ref().is_none_or(|wanted| wanted == name)).collect();
        let mut shown = Vec::with_capacity(locations.len() * (SIZES.len() + DISKS.len()));
        for location in locations {
            shown.extend(SIZES.iter().map(|size| machine(size, location)));
            shown.extend(DISKS.iter().map(|(name, tier)| {
                json!({
                    "resourceType": "disks", "name": name, "tier": tier, "locations": [location],
                    "locationInfo": [{"location": location, "zones": ["1", "2", "3"], "zoneDetails": []}],
                    "capabilities": [], "restrictions": [],
                })
            }));
        }
        Ok(paging::whole(&shown))
    }
}

fn machine(size: &Size, location: &str) -> Value {
    let capabilities = [
        ("vCPUs", size.cores.to_string()),
        ("vCPUsAvailable", size.cores.to_string()),
        ("MemoryGB", size.memory_gb.to_owned()),
        ("MaxDataDiskCount", size.data_disks.to_string()),
        ("MaxNetworkInterfaces", size.interfaces.to_string()),
        ("PremiumIO", "True".to_owned()),
        ("AcceleratedNetworkingEnabled", "True".to_owned()),
        ("EncryptionAtHostSupported", "True".to_owned()),
        ("HyperVGenerations", "V1,V2".to_owned()),
        ("CpuArchitectureType", "x64".to_owned()),
    ]
    .map(|(name, value)| json!({"name": name, "value": value}));
    json!({
        "resourceType": "virtualMachines", "name": size.name, "tier": "Standard",
        "size": size.name.trim_start_matches("Standard_"), "family": size.family, "locations": [location],
        "locationInfo": [{"location": location, "zones": ["1", "2", "3"], "zoneDetails": []}],
        "capabilities": capabilities, "restrictions": [],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sizes_have_names_of_their_own_and_families_stand_together() {
        let names: BTreeSet<&str> = SIZES.iter().map(|size| size.name).collect();
        assert_eq!(names.len(), SIZES.len());
        let families: BTreeSet<&str> = SIZES.iter().map(|size| size.family).collect();
        assert_eq!(core_usages().len(), families.len() + 1);
    }

    #[test]
    fn a_filter_names_one_location_or_is_refused() {
        assert_eq!(location_of("").unwrap(), None);
        assert_eq!(location_of("location eq 'West-US3'").unwrap().as_deref(), Some("west-us3"));
        assert!(location_of("name eq 'x'").is_err() && location_of("location").is_err());
    }
}
