//! What pods look like from the outside of a Service. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::pods;

/// A pod behind a Service, and where it runs.
#[derive(Debug, Clone)]
pub struct Backend {
    pub pod: Arc<Pod>,
    pub zone: Option<String>,
}

/// A kind of address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    /// The families of a Service; those that say nothing are of the first.
    pub fn of(service: &Service) -> Vec<Self> {
        let spec = service.spec.as_ref();
        let told = spec.and_then(|spec| spec.ip_families.as_ref()).into_iter().flatten();
        let told: Vec<Self> = told.map(|family| if family == "IPv6" { Self::V6 } else { Self::V4 }).collect();
        if told.is_empty() { vec![Self::V4] } else { told }
    }

    /// Its name in slices.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// Endpoints with the same ports.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub ports: Vec<EndpointPort>,
    pub endpoints: Vec<Endpoint>,
}

/// Whether a Service has no address of its own.
pub fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    address.is_empty() || address == "None"
}

pub fn publishes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or(false)
}

/// The endpoints of a Service in one family, by the ports they have, in a stable order.
pub fn groups(service: &Service, backends: &[Backend], family: Family) -> BTreeMap<String, Group> {
    let mut groups = BTreeMap::new();
    for backend in backends.iter().filter(|backend| !pods::is_finished(&backend.pod)) {
        let Some(endpoint) = endpoint(service, backend, family) else { continue };
        let ports = ports(service, &backend.pod);
        let group = groups
            .entry(port_key(&ports))
            .or_insert_with(|| Group { ports: ports.clone(), endpoints: Vec::new() });
        group.endpoints.push(endpoint);
    }
    for group in groups.values_mut() {
        group.endpoints.sort_by(|a: &Endpoint, b| a.addresses.cmp(&b.addresses));
    }
    groups
}

/// The same for equal ports in any order.
pub fn port_key(ports: &[EndpointPort]) -> String {
    let mut words: Vec<String> = ports
        .iter()
        .map(|port| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let number = port.port.unwrap_or_default();
            format!("{}/{number}/{}/{}", text(&port.name), text(&port.protocol), text(&port.app_protocol))
        })
        .collect();
    words.sort();
    words.join(" ")
}

/// A pod's addresses of one family.
pub fn addresses(pod: &Pod, family: Family) -> Vec<String> {
    let Some(status) = &pod.status else { return Vec::new() };
    let several = status.pod_ips.iter().flatten().map(|address| &address.ip);
    let all: Vec<&String> = several.chain(&status.pod_ip).collect();
    let mut found: Vec<String> = Vec::new();
    for address in all.into_iter().filter_map(|text| text.parse::<IpAddr>().ok()) {
        let text = address.to_string();
        if address.is_ipv6() == (family == Family::V6) && !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// The host name under which a pod is found in a headless Service's domain.
pub fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.as_ref().filter(|hostname| !hostname.is_empty())?;
    (spec.subdomain == service.metadata.name).then(|| hostname.clone())
}

/// Refers to a pod.
pub fn target(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

fn endpoint(service: &Service, backend: &Backend, family: Family) -> Option<Endpoint> {
    let pod = &backend.pod;
    let addresses = addresses(pod, family);
    if addresses.is_empty() {
        return None;
    }
    let (serving, terminating) = (pods::is_ready(pod), pods::is_terminating(pod));
    let ready = publishes_unready(service) || serving && !terminating;
    Some(Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(service, pod),
        node_name: Some(pods::node_name(pod)).filter(|name| !name.is_empty()).map(str::to_owned),
        target_ref: Some(target(pod)),
        zone: backend.zone.clone(),
        ..Endpoint::default()
    })
}

/// The ports of a pod that a Service means. A port the pod does not have is left out.
pub fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref()).into_iter().flatten();
    ports
        .filter_map(|port| {
            Some(EndpointPort {
                name: Some(port.name.clone().unwrap_or_default()),
                port: Some(number(port, pod)?),
                protocol: Some(protocol(port.protocol.as_ref()).to_owned()),
                app_protocol: port.app_protocol.clone(),
            })
        })
        .collect()
}

fn protocol(told: Option<&String>) -> &str {
    told.map_or("TCP", String::as_str)
}

fn number(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None | Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) if name.is_empty() => Some(port.port),
        Some(IntOrString::String(name)) => {
            let spec = pod.spec.as_ref()?;
            // Init containers that go on running beside the others have ports, too.
            let beside = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
            let containers =
                spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(beside));
            let mut known = containers.flat_map(|container| container.ports.iter().flatten());
            known
                .find(|known| {
                    known.name.as_ref() == Some(name)
                        && protocol(known.protocol.as_ref()) == protocol(port.protocol.as_ref())
                })
                .map(|known| known.container_port)
        }
    }
}
