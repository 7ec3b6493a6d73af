//! Networks and addresses.

use std::net::Ipv4Addr;

use aro_ocm::{AllowMode, CIDRBlockAccess, Cluster, Code, ListeningMethod, Network};
use ipnet::Ipv4Net;

use super::Found;

/// The most blocks of an allow-list.
const MAX_BLOCKS: usize = 500;

/// Networks and endpoints of a cluster.
pub(super) fn check(found: &mut Found, cluster: &Cluster) {
    if let Some(network) = &cluster.network {
        networks(found, network);
    }
    if let Some(access) = cluster.api.as_ref().and_then(|api| api.cidr_block_access.as_ref()) {
        allow_list(found, access);
    }
    let ingresses = cluster.ingresses.as_ref().and_then(|all| all.items.as_deref()).unwrap_or_default();
    if ingresses.len() > 1 {
        found.invalid("ingresses", "at most one ingress is supported");
    }
    if ingresses.iter().any(|ingress| ingress.default == Some(false)) {
        found.invalid("ingresses.items[0].default", "the ingress must be the default one");
    }
}

/// Whether the API server is private.
pub(super) fn is_private(cluster: &Cluster) -> bool {
    cluster.api.as_ref().and_then(|api| api.listening) == Some(ListeningMethod::Internal)
}

fn networks(found: &mut Found, network: &Network) {
    if network.r#type.as_deref().is_some_and(|kind| !matches!(kind, "" | "OVNKubernetes" | "Other")) {
        found.add(
            Code::UnsupportedValue,
            "network.type",
            "'network.type' must be 'OVNKubernetes' or 'Other'",
        );
    }
    let fields = [
        ("network.pod_cidr", &network.pod_cidr),
        ("network.service_cidr", &network.service_cidr),
        ("network.machine_cidr", &network.machine_cidr),
    ];
    let mut known: Vec<(&str, Ipv4Net)> = Vec::new();
    for (field, text) in fields {
        let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else { continue };
        let Some(block) = block(found, field, text) else { continue };
        for (other, taken) in &known {
            if overlap(block, *taken) {
                found.invalid(field, format!("'{field}' {block} overlaps with '{other}' {taken}"));
            }
        }
        known.push((field, block));
    }
    let Some(host_prefix) = network.host_prefix else { return };
    if !(23..=26).contains(&host_prefix) {
        found.invalid("network.host_prefix", "'network.host_prefix' must be between 23 and 26");
    } else if let Some((_, pods)) = known.iter().find(|(field, _)| *field == "network.pod_cidr")
        && i64::from(pods.prefix_len()) > host_prefix
    {
        let reason = format!("'network.pod_cidr' {pods} is smaller than the /{host_prefix} of one node");
        found.invalid("network.host_prefix", reason);
    }
}

fn block(found: &mut Found, field: &str, text: &str) -> Option<Ipv4Net> {
    match text.parse::<Ipv4Net>() {
        Ok(block) if block.trunc() == block => Some(block),
        Ok(block) => {
            let reason = format!("'{field}' {text} has bits beyond its prefix; use {}", block.trunc());
            found.invalid(field, reason);
            None
        }
        Err(_) => {
            let shown = aro_ocm::shape::shortened(text);
            found.invalid(field, format!("'{field}' value '{shown}' is not an IPv4 CIDR block"));
            None
        }
    }
}

fn overlap(one: Ipv4Net, other: Ipv4Net) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

fn allow_list(found: &mut Found, access: &CIDRBlockAccess) {
    const FIELD: &str = "api.cidr_block_access.allow";
    let Some(allow) = &access.allow else { return };
    let values = allow.values.as_deref().unwrap_or_default();
    match allow.mode {
        None => found.required(&format!("{FIELD}.mode")),
        Some(AllowMode::AllowAll) if !values.is_empty() => {
            found.add(Code::Conflicting, &format!("{FIELD}.values"), "mode 'allow_all' takes no values");
        }
        Some(AllowMode::AllowAll) => {}
        Some(AllowMode::AllowList) if values.is_empty() => found.required(&format!("{FIELD}.values")),
        Some(AllowMode::AllowList) => blocks(found, &format!("{FIELD}.values"), values),
    }
}

fn blocks(found: &mut Found, field: &str, values: &[String]) {
    if values.len() > MAX_BLOCKS {
        found.invalid(field, format!("'{field}' has {} blocks, more than {MAX_BLOCKS}", values.len()));
        return;
    }
    let mut sorted: Vec<Ipv4Net> = Vec::with_capacity(values.len());
    for (index, text) in values.iter().enumerate() {
        let place = format!("{field}[{index}]");
        let Some(block) = block(found, &place, text) else { continue };
        if block.prefix_len() == 0 {
            found.invalid(&place, format!("'{place}' 0.0.0.0/0 is not an allow-list; use mode 'allow_all'"));
        } else if let Some(private) = PRIVATE.into_iter().find(|private| overlap(*private, block)) {
            found.invalid(&place, format!("'{place}' {block} is in the private range {private}"));
        } else {
            sorted.push(block);
        }
    }
    // Blocks either contain each other or are apart, so neighbours in order are enough.
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        if let [one, other] = pair
            && overlap(*one, *other)
        {
            found.invalid(field, format!("'{field}' {one} and {other} overlap"));
        }
    }
}

const PRIVATE: [Ipv4Net; 5] = [
    Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(172, 16, 0, 0), 12),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 0, 0), 16),
    Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16),
];
