//! Clusters.

use std::collections::HashSet;

use aro_ocm::{Cluster, ClusterAutoscaler, Code, names, property};

use super::value::{drain_period, go_duration};
use super::{Found, azure, network};
use crate::versions::{Catalogue, VersionNumber};

/// The longest name.
const MAX_NAME: usize = 54;
const MAX_MIRRORS: usize = 252;
const MAX_PROPERTIES: usize = 100;
const MAX_PROPERTY: usize = 1024;
/// The sizes of control planes.
const SIZES: [&str; 6] = ["small", "medium", "large", "xlarge", "xxlarge", "e2e_minimal"];
/// The first minor version with a private API server.
const PRIVATE_API: (u32, u32) = (4, 22);

/// What clusters are checked against.
pub(in crate::api) struct ClusterRules<'r> {
    /// The releases on offer.
    pub(in crate::api) catalogue: &'r Catalogue,
    /// The region of this instance, if it has only one.
    pub(in crate::api) region: Option<&'r str>,
    /// Whether nothing is made in the cloud.
    pub(in crate::api) noop: bool,
}

/// Everything that is wrong with a complete cluster. `creating` adds what only a new one must meet.
pub(in crate::api) fn cluster(cluster: &Cluster, rules: &ClusterRules<'_>, creating: bool) -> Found {
    let mut found = Found::default();
    if creating {
        identity(&mut found, cluster, rules);
        version(&mut found, cluster, rules);
        let noop = rules.noop || cluster.has_property(property::NOOP_PROVISION);
        match &cluster.azure {
            Some(azure) => azure::check(&mut found, azure, !noop),
            None => found.required("azure"),
        }
    } else if let Some(azure) = &cluster.azure {
        azure::check(&mut found, azure, false);
    }
    network::check(&mut found, cluster);
    mirrors(&mut found, cluster);
    drain_period(&mut found, "node_drain_grace_period", cluster.node_drain_grace_period.as_ref());
    if let Some(settings) = &cluster.autoscaler {
        autoscaler(&mut found, settings);
    }
    properties(&mut found, cluster);
    found
}

fn identity(found: &mut Found, cluster: &Cluster, rules: &ClusterRules<'_>) {
    if let Some(name) = found.text("name", cluster.name.as_ref()) {
        let lower = |c: char| c.is_ascii_lowercase();
        let word = |c: char| lower(c) || c.is_ascii_digit();
        let good = name.len() <= MAX_NAME
            && name.starts_with(lower)
            && name.ends_with(word)
            && name.chars().all(|c| word(c) || c == '-');
        if !good {
            let reason = format!(
                "'name' must have at most {MAX_NAME} lower-case letters, digits and '-', begin with a letter and end with a letter or digit"
            );
            found.invalid("name", reason);
        }
    }
    found.not_empty("domain_prefix", cluster.domain_prefix.as_ref());
    if let Some(prefix) = cluster.domain_prefix.as_deref().filter(|prefix| !prefix.is_empty())
        && !names::is_domain_prefix(prefix)
    {
        found.invalid(
            "domain_prefix",
            "'domain_prefix' must have at most 15 lower-case letters, digits and '-', begin with a letter and not end with '-'",
        );
    }
    let id = |reference: &Option<aro_ocm::Reference>| reference.as_ref().and_then(|one| one.id.clone());
    let region = id(&cluster.region);
    if let Some(region) = found.text("region.id", region.as_ref())
        && let Some(mine) = rules.region
        && !region.eq_ignore_ascii_case(mine)
    {
        found.add(
            Code::UnsupportedValue,
            "region.id",
            format!("'region.id' must be '{mine}', not '{region}'"),
        );
    }
    for (field, value, expected) in [
        ("cloud_provider.id", id(&cluster.cloud_provider), "azure"),
        ("product.id", id(&cluster.product), "aro"),
    ] {
        if value.is_some_and(|value| value != expected) {
            found.add(Code::UnsupportedValue, field, format!("'{field}' must be '{expected}'"));
        }
    }
    for (field, value) in [
        ("hypershift.enabled", cluster.hypershift.as_ref().and_then(|one| one.enabled)),
        ("ccs.enabled", cluster.ccs.as_ref().and_then(|one| one.enabled)),
    ] {
        if value == Some(false) {
            found.add(Code::UnsupportedValue, field, format!("'{field}' must be true"));
        }
    }
    if let Some(shard) = &cluster.provision_shard_id
        && aro_ocm::ShardId::parse(shard).is_err()
    {
        found.invalid("provision_shard_id", "'provision_shard_id' must be a UUID");
    }
}

fn version(found: &mut Found, cluster: &Cluster, rules: &ClusterRules<'_>) {
    let given = cluster.version.as_ref();
    let id = given.and_then(|version| version.id.as_deref()).unwrap_or_default();
    let group = given.and_then(|version| version.channel_group.as_deref()).unwrap_or_default();
    let release = match id {
        "" => rules.catalogue.default_release(),
        id => rules.catalogue.find(id),
    };
    let Some(release) = release else {
        let shown = aro_ocm::shape::shortened(id);
        return found.add(Code::NotFound, "version.id", format!("Version '{shown}' not found"));
    };
    if !release.enabled {
        found.add(Code::UnsupportedValue, "version.id", format!("Version '{}' is not enabled", release.id()));
    }
    if !id.is_empty() && !group.is_empty() && group != release.channel_group {
        let reason = format!(
            "Version '{}' belongs to channel group '{}', not to '{}'",
            release.id(),
            release.channel_group,
            aro_ocm::shape::shortened(group)
        );
        found.add(Code::Conflicting, "version.channel_group", reason);
    }
    if network::is_private(cluster) && release.number.line() < PRIVATE_API {
        let reason = format!("a private API server requires version 4.22 or later, not {}", release.number);
        found.add(Code::UnsupportedValue, "api.listening", reason);
    }
}

fn mirrors(found: &mut Found, cluster: &Cluster) {
    const FIELD: &str = "registry_config.image_digest_mirrors";
    let mirrors = cluster.registry_config.as_ref().and_then(|config| config.image_digest_mirrors.as_deref());
    let mirrors = mirrors.unwrap_or_default();
    if mirrors.len() > MAX_MIRRORS {
        found.invalid(FIELD, format!("'{FIELD}' has {} sources, more than {MAX_MIRRORS}", mirrors.len()));
    }
    let mut sources = HashSet::new();
    for (index, mirror) in mirrors.iter().enumerate().take(MAX_MIRRORS) {
        let place = format!("{FIELD}[{index}]");
        if let Some(source) = found.text(&format!("{place}.source"), mirror.source.as_ref())
            && !sources.insert(source)
        {
            let reason = format!("source '{}' appears twice", aro_ocm::shape::shortened(source));
            found.add(Code::Duplicate, &format!("{place}.source"), reason);
        }
        let targets = mirror.mirrors.as_deref().unwrap_or_default();
        if targets.is_empty() || targets.iter().any(String::is_empty) {
            found.required(&format!("{place}.mirrors"));
        }
    }
}

fn autoscaler(found: &mut Found, settings: &ClusterAutoscaler) {
    if let Some(text) = &settings.max_node_provision_time
        && !go_duration(text).is_some_and(|seconds| seconds > 0.0)
    {
        let field = "autoscaler.max_node_provision_time";
        found.invalid(field, format!("'{field}' must be a positive duration such as '15m'"));
    }
    let limits = settings.resource_limits.as_ref();
    for (field, value) in [
        ("autoscaler.max_pod_grace_period", settings.max_pod_grace_period),
        ("autoscaler.log_verbosity", settings.log_verbosity),
        ("autoscaler.resource_limits.max_nodes_total", limits.and_then(|limits| limits.max_nodes_total)),
    ] {
        if value.is_some_and(|value| value < 0) {
            found.invalid(field, format!("'{field}' must not be negative"));
        }
    }
    for (field, range) in [
        ("autoscaler.resource_limits.cores", limits.and_then(|limits| limits.cores.as_ref())),
        ("autoscaler.resource_limits.memory", limits.and_then(|limits| limits.memory.as_ref())),
    ] {
        if let Some(range) = range
            && (range.min.is_some_and(|min| min < 0) || range.min > range.max)
        {
            found.invalid(field, format!("'{field}' must have 0 <= min <= max"));
        }
    }
    let down = settings.scale_down.as_ref();
    for (field, value) in [
        ("autoscaler.scale_down.unneeded_time", down.and_then(|down| down.unneeded_time.as_ref())),
        ("autoscaler.scale_down.delay_after_add", down.and_then(|down| down.delay_after_add.as_ref())),
        ("autoscaler.scale_down.delay_after_delete", down.and_then(|down| down.delay_after_delete.as_ref())),
        (
            "autoscaler.scale_down.delay_after_failure",
            down.and_then(|down| down.delay_after_failure.as_ref()),
        ),
    ] {
        if value.is_some_and(|text| go_duration(text).is_none()) {
            found.invalid(field, format!("'{field}' must be a duration such as '10m'"));
        }
    }
}

fn properties(found: &mut Found, cluster: &Cluster) {
    let Some(properties) = &cluster.properties else { return };
    if properties.len() > MAX_PROPERTIES {
        found.invalid("properties", format!("'properties' has more than {MAX_PROPERTIES} entries"));
    }
    for (name, value) in properties.iter().take(MAX_PROPERTIES) {
        let field = format!("properties.{name}");
        if name.is_empty() || name.len() > MAX_PROPERTY || value.len() > MAX_PROPERTY {
            found.invalid("properties", format!("names and values have 1 to {MAX_PROPERTY} bytes"));
            continue;
        }
        match name.as_str() {
            property::SINGLE_REPLICA | property::NOOP_PROVISION | property::NOOP_DEPROVISION
                if !matches!(value.as_str(), "true" | "false") =>
            {
                found.add(Code::UnsupportedValue, &field, format!("'{field}' must be 'true' or 'false'"));
            }
            property::SIZE_OVERRIDE if !SIZES.contains(&value.as_str()) => {
                found.add(
                    Code::UnsupportedValue,
                    &field,
                    format!("'{field}' must be one of {}", SIZES.join(", ")),
                );
            }
            property::PROVISION_SHARD_ID => {
                let reason = format!("'{field}' is retired, use the member 'provision_shard_id'");
                found.add(Code::UnsupportedValue, &field, reason);
            }
            _ => {}
        }
    }
}

/// The version number of an id such as `openshift-v4.20.8-fast`.
pub(in crate::api) fn number_of(catalogue: &Catalogue, id: &str) -> Option<VersionNumber> {
    catalogue.find(id).map(|release| release.number.clone())
}
