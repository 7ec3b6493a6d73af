//! Address ranges: each a plain IPv4 network, the three of a cluster apart from each other; who may reach the API.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

use crate::hcp::cluster::ClusterProperties;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

pub fn check(properties: &ClusterProperties, path: &FieldPath, problems: &mut Problems) {
    let network = &properties.network;
    let at = path.child("network");
    let ranges = [
        ("machineCidr", &network.machine_cidr),
        ("serviceCidr", &network.service_cidr),
        ("podCidr", &network.pod_cidr),
    ]
    .map(|(name, text)| (name, cidr(text, &at.child(name), problems)));
    for (index, (name, range)) in ranges.iter().enumerate() {
        for (other_name, other) in ranges.iter().skip(index + 1) {
            if let (Some(range), Some(other)) = (range, other)
                && (range.contains(other) || other.contains(range))
            {
                let why = format!(
                    "{name} {:?} and {other_name} {:?} overlap",
                    range.to_string(),
                    other.to_string()
                );
                problems.push(FieldError::invalid(&at, &range.to_string(), why));
            }
        }
    }

    let at = path.child("api").child("authorizedCidrs");
    for (index, text) in properties.api.authorized_cidrs.iter().flatten().enumerate() {
        check_address_or_range(text, &at.index(index), problems);
    }
}

/// An IPv4 network in its canonical form.
fn cidr(text: &str, at: &FieldPath, problems: &mut Problems) -> Option<Ipv4Net> {
    match text.parse::<IpNet>() {
        Ok(IpNet::V4(range)) if range.trunc() == range => Some(range),
        Ok(IpNet::V4(range)) => {
            let why = format!("not IPv4 CIDR: must be {:?}", range.trunc().to_string());
            problems.push(FieldError::invalid(at, text, why));
            None
        }
        _ => {
            problems.push(FieldError::invalid(at, text, "not IPv4 CIDR"));
            None
        }
    }
}

fn check_address_or_range(text: &str, at: &FieldPath, problems: &mut Problems) {
    if text.trim() != text {
        problems.push(FieldError::invalid(at, text, "must not contain extra whitespace"));
    } else if text.is_empty() {
        problems.push(FieldError::required(at));
    } else if text.contains('/') {
        cidr(text, at, problems);
    } else if text.parse::<Ipv4Addr>().is_err() {
        let why = if text.parse::<IpAddr>().is_ok() { "not IPv4" } else { "not an IP" };
        problems.push(FieldError::invalid(at, text, why));
    }
}
