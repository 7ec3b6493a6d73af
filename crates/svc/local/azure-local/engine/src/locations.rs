//! The Azure regions that the local cloud offers.

/// Name, display name, geography.
pub const LOCATIONS: &[(&str, &str, &str)] = &[
    ("australiaeast", "Australia East", "Asia Pacific"),
    ("brazilsouth", "Brazil South", "South America"),
    ("canadacentral", "Canada Central", "Canada"),
    ("centralindia", "Central India", "Asia Pacific"),
    ("centralus", "Central US", "US"),
    ("eastasia", "East Asia", "Asia Pacific"),
    ("eastus", "East US", "US"),
    ("eastus2", "East US 2", "US"),
    ("francecentral", "France Central", "Europe"),
    ("germanywestcentral", "Germany West Central", "Europe"),
    ("japaneast", "Japan East", "Asia Pacific"),
    ("northeurope", "North Europe", "Europe"),
    ("norwayeast", "Norway East", "Europe"),
    ("southafricanorth", "South Africa North", "Africa"),
    ("southcentralus", "South Central US", "US"),
    ("southeastasia", "Southeast Asia", "Asia Pacific"),
    ("swedencentral", "Sweden Central", "Europe"),
    ("switzerlandnorth", "Switzerland North", "Europe"),
    ("uksouth", "UK South", "UK"),
    ("westeurope", "West Europe", "Europe"),
    ("westus2", "West US 2", "US"),
    ("westus3", "West US 3", "US"),
];

/// The name of a region, however it is spelled: `West US 3` is `westus3`.
pub fn normalise(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Whether there is such a region.
pub fn is_known(normalised: &str) -> bool {
    LOCATIONS.iter().any(|(name, ..)| *name == normalised)
}

/// All names, joined by commas.
pub fn names() -> String {
    LOCATIONS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_normalise_to_names() {
        for (name, display, _) in LOCATIONS {
            assert_eq!(&normalise(display), name);
            assert!(is_known(name));
        }
        assert!(!is_known("atlantis"));
    }
}
