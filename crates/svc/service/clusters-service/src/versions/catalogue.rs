//! A list of releases and what can be asked of it.

use std::collections::HashMap;

use aro_ocm::{Href, ReleaseImageDetails, ReleaseImages, Root, VERSION_PREFIX, Version, version_id};

use super::{CHANNEL_GROUPS, DEFAULT_VERSION, VersionNumber, embedded};

/// A release in a channel group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its number.
    pub number: VersionNumber,
    /// The channel group.
    pub channel_group: String,
    /// Whether clusters can be created with it.
    pub enabled: bool,
    /// Its image, by digest.
    pub image: String,
}

impl Release {
    /// Its id.
    pub fn id(&self) -> String {
        version_id(&self.number.to_string(), &self.channel_group)
    }
}

/// A list of releases.
#[derive(Debug)]
pub struct Catalogue {
    releases: Vec<Release>,
    by_id: HashMap<String, usize>,
    /// The edges of a graph that brought its own; the rule decides otherwise.
    edges: Option<HashMap<String, Vec<String>>>,
}

impl Catalogue {
    /// The embedded list.
    pub fn embedded() -> Self {
        Self::new(embedded::releases(), None)
    }

    /// A list, with edges from id to raw ids if the source has them.
    pub(super) fn new(mut releases: Vec<Release>, edges: Option<HashMap<String, Vec<String>>>) -> Self {
        let place = |group: &str| CHANNEL_GROUPS.iter().position(|known| *known == group);
        releases.sort_by(|one, other| {
            let groups = (place(&one.channel_group), &one.channel_group);
            groups
                .cmp(&(place(&other.channel_group), &other.channel_group))
                .then_with(|| one.number.cmp(&other.number))
        });
        releases.dedup_by(|one, other| one.id() == other.id());
        let by_id = releases.iter().enumerate().map(|(index, release)| (release.id(), index)).collect();
        Self { releases, by_id, edges }
    }

    /// All releases, by channel group and number.
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }

    /// A release by its id, with or without the prefix.
    pub fn find(&self, id: &str) -> Option<&Release> {
        let found = match self.by_id.get(id) {
            Some(found) => found,
            None if id.starts_with(VERSION_PREFIX) => return None,
            None => self.by_id.get(&format!("{VERSION_PREFIX}{id}"))?,
        };
        self.releases.get(*found)
    }

    /// A release by number and channel group.
    pub fn find_in(&self, raw: &str, channel_group: &str) -> Option<&Release> {
        self.find(&version_id(raw, channel_group))
    }

    /// The release of clusters that name none.
    pub fn default_release(&self) -> Option<&Release> {
        self.find_in(DEFAULT_VERSION, aro_ocm::STABLE).or_else(|| {
            self.releases.iter().rfind(|release| release.enabled && release.channel_group == aro_ocm::STABLE)
        })
    }

    /// The raw ids of the releases that a release can be upgraded to.
    pub fn upgrades_of(&self, release: &Release) -> Vec<String> {
        if let Some(edges) = &self.edges {
            return edges.get(&release.id()).cloned().unwrap_or_default();
        }
        let reachable = |other: &&Release| {
            other.enabled
                && other.channel_group == release.channel_group
                && release.number.leads_to(&other.number)
        };
        self.releases.iter().filter(reachable).map(|other| other.number.to_string()).collect()
    }

    /// A release as the API shows it.
    pub fn shown(&self, release: &Release, root: Root) -> Version {
        let id = release.id();
        let is_default = self.default_release().is_some_and(|default| default.id() == id);
        let upgrades = self.upgrades_of(release);
        let details = ReleaseImageDetails {
            release_image: Some(release.image.clone()),
            available_upgrades: Some(upgrades.clone()),
        };
        Version {
            kind: Some("Version".to_owned()),
            href: Some(Href::Version(id.clone()).under(root)),
            id: Some(id),
            raw_id: Some(release.number.to_string()),
            channel_group: Some(release.channel_group.clone()),
            enabled: Some(release.enabled),
            default: Some(is_default),
            hosted_control_plane_enabled: Some(release.enabled),
            hosted_control_plane_default: Some(is_default),
            rosa_enabled: Some(false),
            available_upgrades: Some(upgrades),
            release_image: Some(release.image.clone()),
            release_images: Some(ReleaseImages { arm64: None, multi: Some(details) }),
            end_of_life_timestamp: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_embedded_list_is_the_recorded_one_in_every_channel_group() {
        let catalogue = Catalogue::embedded();
        for group in CHANNEL_GROUPS {
            let of_group = catalogue.releases().iter().filter(|release| release.channel_group == group);
            assert_eq!(of_group.count(), 119, "{group}");
        }
        let images: HashSet<&str> =
            catalogue.releases().iter().map(|release| release.image.as_str()).collect();
        assert_eq!(images.len(), 119, "one image for each version, in all groups");
        assert_eq!(catalogue.default_release().unwrap().id(), "openshift-v4.20.8");
        let disabled = catalogue.find("openshift-v4.19.42").unwrap();
        assert!(!disabled.enabled);
    }

    #[test]
    fn a_release_is_found_with_and_without_its_prefix() {
        let catalogue = Catalogue::embedded();
        assert_eq!(catalogue.find("4.20.8"), catalogue.find("openshift-v4.20.8"));
        assert_eq!(catalogue.find("openshift-v4.20.8-fast").unwrap().channel_group, "fast");
        assert_eq!(catalogue.find_in("4.20.8", "").unwrap().channel_group, "stable");
        assert!(catalogue.find("openshift-v4.20.7").is_none() && catalogue.find("").is_none());
    }

    #[test]
    fn upgrades_follow_the_rule_and_lead_to_enabled_releases_only() {
        let catalogue = Catalogue::embedded();
        let version = catalogue.shown(catalogue.find("4.21.29").unwrap(), Root::AroHcp);
        let upgrades = version.available_upgrades.unwrap();
        assert_eq!(upgrades.first().map(String::as_str), Some("4.21.30"));
        assert_eq!(upgrades.len(), 1 + 12);
        let last = catalogue.find("4.22.11").unwrap();
        assert!(catalogue.upgrades_of(last).is_empty());
    }
}
