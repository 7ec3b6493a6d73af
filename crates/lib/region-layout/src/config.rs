//! The section `[region]`.

use aro_runtime::{Problems, Section};
use uuid::Uuid;

use crate::names::LayoutParams;

aro_runtime::section! {
    /// The region of the service, as the names of its resources in the cloud have it.
    pub struct RegionConfig in "region" {
        /// The environment, a part of most names: one to four lower-case letters or digits.
        pub environment: String = "dev".to_owned(),
        /// The Azure region.
        pub location: String = "westus3".to_owned(),
        /// The region in names that must be short: two to four lower-case letters or digits.
        pub short_name: String = "usw3".to_owned(),
        /// The region's label in DNS names. Not set: the Azure region.
        pub subdomain: Option<String> = None,
        /// The parent zone of the service's own names.
        pub service_zone: String = "hcpsvc.osadev.cloud".to_owned(),
        /// The parent zone of the names of hosted clusters.
        pub cluster_zone: String = "hcp.osadev.cloud".to_owned(),
    }
}

impl Section for RegionConfig {
    fn examine(&self, problems: &mut Problems) {
        for (key, text, range) in [
            ("environment", &self.environment, 1..=4),
            ("short_name", &self.short_name, 2..=4),
            ("location", &self.location, 3..=24),
        ] {
            if !range.contains(&text.len()) || !text.bytes().all(is_word) {
                let (least, most) = (range.start(), range.end());
                problems.add(key, format!("must be {least} to {most} lower-case letters or digits"));
            }
        }
        if self.subdomain.as_deref().is_some_and(|label| !is_label(label)) {
            problems.add("subdomain", "must be one DNS label");
        }
        for (key, zone) in [("service_zone", &self.service_zone), ("cluster_zone", &self.cluster_zone)] {
            if !zone.contains('.') || !zone.split('.').all(is_label) || zone.len() > 200 {
                problems.add(key, "must be a DNS name of at least two labels, in lower case");
            }
        }
        if self.service_zone == self.cluster_zone {
            problems.add("cluster_zone", "must differ from service_zone");
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| is_word(byte) || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl RegionConfig {
    /// The params of the layout, with the service's tenant and the stamps of the management clusters.
    pub fn params(&self, tenant: Uuid, stamps: Vec<String>) -> LayoutParams {
        LayoutParams {
            tenant,
            environment: self.environment.clone(),
            location: self.location.clone(),
            short_name: self.short_name.clone(),
            subdomain: self.subdomain.clone().unwrap_or_else(|| self.location.clone()),
            service_zone: self.service_zone.clone(),
            cluster_zone: self.cluster_zone.clone(),
            stamps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl FnOnce(&mut RegionConfig)) -> String {
        let mut config = RegionConfig::default();
        change(&mut config);
        config.check().err().map(|problems| problems.to_string()).unwrap_or_default()
    }

    #[test]
    fn names_that_azure_would_refuse_are_refused() {
        assert_eq!(problems(|_| ()), "");
        assert!(problems(|config| config.environment = "staging".into()).contains("region.environment"));
        assert!(problems(|config| config.short_name = "U".into()).contains("region.short_name"));
        assert!(problems(|config| config.location = "West US 3".into()).contains("region.location"));
        assert!(problems(|config| config.subdomain = Some("a.b".into())).contains("region.subdomain"));
        assert!(problems(|config| config.service_zone = "local".into()).contains("region.service_zone"));
        assert!(
            problems(|config| config.cluster_zone = config.service_zone.clone())
                .contains("region.cluster_zone")
        );
    }

    #[test]
    fn the_subdomain_is_the_location_unless_it_is_set() {
        let mut config = RegionConfig::default();
        assert_eq!(config.params(Uuid::nil(), Vec::new()).subdomain, "westus3");
        config.subdomain = Some("westus3staging".to_owned());
        assert_eq!(config.params(Uuid::nil(), Vec::new()).subdomain, "westus3staging");
    }
}
