//! Services and the endpoints behind them.

use std::collections::HashSet;

use serde_json::Value;

use super::path::{Found, Path, list, member, number, text};
use super::{format, metadata};

const SPEC: Path<'static> = Path::new("spec");
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub fn service(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        found.required(&SPEC.child("ports"), "");
    }
    if kind == "ExternalName" {
        external_name(found, spec);
    }
    ports(found, spec, kind, headless);
    metadata::labels(found, spec, "selector", &SPEC.child("selector"));
    let affinity = text(spec, "sessionAffinity");
    match affinity {
        "" => found.required(&SPEC.child("sessionAffinity"), ""),
        _ => found.one_of(&SPEC.child("sessionAffinity"), affinity, &["ClientIP", "None"]),
    }
    cluster_ips(found, spec, kind);
    for (index, ip) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        if format::ip(ip).is_none() {
            found.invalid(&SPEC.child("externalIPs").index(index), ip, format::IP_RULE);
        }
    }
    match kind {
        "" => found.required(&SPEC.child("type"), ""),
        _ => found.one_of(
            &SPEC.child("type"),
            kind,
            &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        ),
    }
    source_ranges(found, spec, kind);
    traffic_policies(found, spec, kind);
}

fn external_name(found: &mut Found, spec: &Value) {
    match text(spec, "externalName").trim_end_matches('.') {
        "" => found.required(&SPEC.child("externalName"), ""),
        name => found.texts(&SPEC.child("externalName"), name, format::dns_subdomain(name)),
    }
}

fn ports(found: &mut Found, spec: &Value, kind: &str, headless: bool) {
    let ports = list(spec, "ports");
    let at = SPEC.child("ports");
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = at.index(index);
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                found.required(&at.child("name"), "");
            }
        } else {
            found.texts(&at.child("name"), name, format::dns_label(name));
            if !names.insert(name) {
                found.duplicate(&at.child("name"), name);
            }
        }
        found.port(&at.child("port"), number(port, "port").unwrap_or_default());
        match text(port, "protocol") {
            "" => found.required(&at.child("protocol"), ""),
            protocol => found.one_of(&at.child("protocol"), protocol, &PROTOCOLS),
        }
        target_port(found, port, &at.child("targetPort"));
        if headless
            && kind == "ClusterIP"
            && port.get("nodePort").and_then(Value::as_i64).is_some_and(|port| port != 0)
        {
            found.forbidden(&at.child("nodePort"), "may not be used when `clusterIP` is 'None'");
        }
    }
    if kind == "ClusterIP" && !headless {
        for (index, port) in ports.iter().enumerate() {
            if number(port, "nodePort").is_some_and(|number| number != 0) {
                found.forbidden(
                    &at.index(index).child("nodePort"),
                    "may not be used when `type` is 'ClusterIP'",
                );
            }
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, own) = (text(port, "protocol"), number(port, "port"));
        if !seen.insert((protocol, own)) {
            found.duplicate(&at.index(index), serde_json::json!({"Protocol": protocol, "Port": own}));
        }
    }
}

fn target_port(found: &mut Found, port: &Value, at: &Path<'_>) {
    match port.get("targetPort") {
        Some(Value::String(name)) => found.texts(at, name, format::port_name(name)),
        value => found.port(at, value.and_then(Value::as_i64).unwrap_or_default()),
    }
}

fn cluster_ips(found: &mut Found, spec: &Value, kind: &str) {
    let at = SPEC.child("clusterIPs");
    let ips: Vec<&str> = list(spec, "clusterIPs").iter().filter_map(Value::as_str).collect();
    if kind == "ExternalName" {
        if !ips.is_empty() {
            found.forbidden(&at, "may not be set when `type` is 'ExternalName'");
        }
        return;
    }
    for (index, ip) in ips.iter().enumerate() {
        if *ip == "None" {
            if index > 0 {
                found.invalid(&at.index(index), *ip, "'None' must be the first and only value");
            }
        } else if format::ip(ip).is_none() {
            found.invalid(&at.index(index), *ip, format::IP_RULE);
        }
    }
    let families = list(spec, "ipFamilies");
    for (index, (ip, family)) in ips.iter().zip(families.iter().filter_map(Value::as_str)).enumerate() {
        let own = match format::ip(ip) {
            Some(ip) if ip.is_ipv4() => "IPv4",
            Some(_) => "IPv6",
            None => continue,
        };
        if own != family {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            found.invalid(&at.index(index), *ip, why);
        }
    }
    if let Some(policy) = member(spec, "ipFamilyPolicy").and_then(Value::as_str) {
        let supported = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        found.one_of(&SPEC.child("ipFamilyPolicy"), policy, &supported);
    }
}

fn source_ranges(found: &mut Found, spec: &Value, kind: &str) {
    let ranges = list(spec, "loadBalancerSourceRanges");
    // Upstream spells this path differently from the member.
    let at = SPEC.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && kind != "LoadBalancer" {
        found.forbidden(&at, "may only be used when `type` is 'LoadBalancer'");
    }
    for (index, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
        if format::cidr(range.trim()).is_none() {
            found.invalid(&at.index(index), range, format::CIDR_RULE);
        }
    }
}

fn traffic_policies(found: &mut Found, spec: &Value, kind: &str) {
    let external = text(spec, "externalTrafficPolicy");
    let outside = matches!(kind, "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty());
    let at = SPEC.child("externalTrafficPolicy");
    if !outside && !external.is_empty() {
        found.invalid(&at, external, "may only be set for externally-accessible services");
    } else if outside {
        match external {
            "" => found.required(&at, ""),
            _ => found.one_of(&at, external, &["Cluster", "Local"]),
        }
    }
    if let Some(internal) = member(spec, "internalTrafficPolicy").and_then(Value::as_str) {
        found.one_of(&SPEC.child("internalTrafficPolicy"), internal, &["Cluster", "Local"]);
    }
}

/// Addresses stay with a Service for its life, unless it has no use for them any more.
pub fn update(found: &mut Found, new: &Value, old: &Value) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    if text(spec, "type") == "ExternalName" || text(before, "type") == "ExternalName" {
        return;
    }
    let first = |spec: &Value| list(spec, "clusterIPs").first().cloned();
    if let (Some(now), Some(was)) = (first(spec), first(before))
        && now != was
    {
        let at = SPEC.child("clusterIPs");
        found.0.retain(|error| error.field != "spec.clusterIPs[0]");
        found.invalid(&at.index(0), list(spec, "clusterIPs").to_vec(), "may not change once set");
    }
}

pub fn endpoints(found: &mut Found, object: &Value) {
    let subsets = Path::new("subsets");
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let at = subsets.index(index);
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            found.required(&at, "must specify `addresses` or `notReadyAddresses`");
        }
        for key in ["addresses", "notReadyAddresses"] {
            for (index, address) in list(subset, key).iter().enumerate() {
                let all = at.child(key);
                let at = all.index(index);
                let ip = text(address, "ip");
                if format::ip(ip).is_none() {
                    found.invalid(&at.child("ip"), ip, format::IP_RULE);
                }
                special_ip(found, ip, &at.child("ip"));
                let host = text(address, "hostname");
                if !host.is_empty() {
                    found.texts(&at.child("hostname"), host, format::dns_label(host));
                }
            }
        }
        for (index, port) in list(subset, "ports").iter().enumerate() {
            let all = at.child("ports");
            let at = all.index(index);
            let name = text(port, "name");
            if name.is_empty() && list(subset, "ports").len() > 1 {
                found.required(&at.child("name"), "");
            } else if !name.is_empty() {
                found.texts(&at.child("name"), name, format::dns_label(name));
            }
            found.port(&at.child("port"), number(port, "port").unwrap_or_default());
            found.one_of(&at.child("protocol"), text(port, "protocol"), &PROTOCOLS);
        }
    }
}

/// Addresses that mean something else than a peer.
fn special_ip(found: &mut Found, ip: &str, at: &Path<'_>) {
    use std::net::IpAddr;
    let why = match format::ip(ip) {
        None => "must be a valid IP address".to_owned(),
        Some(own) if own.is_unspecified() => format!("may not be unspecified ({ip})"),
        Some(own) if own.is_loopback() => {
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
        }
        Some(IpAddr::V4(own)) if own.is_link_local() => {
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
        }
        Some(IpAddr::V4(own)) if own.octets()[..3] == [224, 0, 0] => {
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
        }
        _ => return,
    };
    found.invalid(at, ip, why);
}

pub fn endpoint_slice(found: &mut Found, object: &Value) {
    let kind = text(object, "addressType");
    let at = Path::new("addressType");
    match kind {
        "" => found.required(&at, ""),
        _ => found.one_of(&at, kind, &["FQDN", "IPv4", "IPv6"]),
    }
    let endpoints = Path::new("endpoints");
    for (index, endpoint) in list(object, "endpoints").iter().enumerate() {
        let at = endpoints.index(index);
        let addresses = list(endpoint, "addresses");
        let all = at.child("addresses");
        if addresses.is_empty() {
            found.required(&all, "must contain at least 1 address");
        }
        for (index, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
            let at = all.index(index);
            match (kind, format::ip(address)) {
                ("IPv4" | "IPv6", None) => found.invalid(&at, address, format::IP_RULE),
                ("IPv4", Some(ip)) if !ip.is_ipv4() => found.invalid(&at, address, "must be an IPv4 address"),
                ("IPv6", Some(ip)) if !ip.is_ipv6() => found.invalid(&at, address, "must be an IPv6 address"),
                ("IPv4" | "IPv6", Some(_)) => special_ip(found, address, &at),
                ("FQDN", _) => found.texts(&at, address, format::dns_subdomain(address)),
                _ => {}
            }
        }
        if let Some(host) = member(endpoint, "hostname").and_then(Value::as_str) {
            found.texts(&at.child("hostname"), host, format::dns_label(host));
        }
    }
    let ports = Path::new("ports");
    let mut names = HashSet::new();
    for (index, port) in list(object, "ports").iter().enumerate() {
        let at = ports.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            found.texts(&at.child("name"), name, format::dns_label(name));
        }
        if !names.insert(name) {
            found.duplicate(&at.child("name"), name);
        }
        match text(port, "protocol") {
            "" => found.required(&at.child("protocol"), ""),
            protocol => found.one_of(&at.child("protocol"), protocol, &PROTOCOLS),
        }
    }
}
