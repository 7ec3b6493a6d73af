//! The old Endpoints object: the same knowledge in one piece, for those who still read it. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use super::desired::{
    Backend, Family, addresses, hostname, is_headless, port_key, ports, publishes_unready, target,
};
use super::plan::HEADLESS;
use crate::pods;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// Addresses in one object, at most.
const FULL: usize = 1000;

/// Whether this controller made the object.
pub fn is_managed(endpoints: &Endpoints) -> bool {
    endpoints.labels().get(MANAGED_BY).is_some_and(|manager| manager == MANAGER)
}

/// The object as it should be; `None` if it is so.
pub fn wanted(service: &Service, backends: &[Backend], known: Option<&Endpoints>) -> Option<Endpoints> {
    let (subsets, cut) = subsets(service, backends);
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = known.and_then(|known| known.metadata.annotations.clone()).unwrap_or_default();
    annotations.remove(OVER_CAPACITY);
    if cut {
        annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    }
    let wanted = Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            resource_version: known.and_then(|known| known.metadata.resource_version.clone()),
            ..ObjectMeta::default()
        },
        subsets: (!subsets.is_empty()).then_some(subsets),
    };
    let same = known.is_some_and(|known| {
        known.labels() == wanted.labels()
            && known.annotations() == wanted.annotations()
            && canonical(known.subsets.as_deref()) == canonical(wanted.subsets.as_deref())
    });
    (!same).then_some(wanted)
}

/// In an order of ours: API servers put them in one of theirs.
fn canonical(subsets: Option<&[EndpointSubset]>) -> Vec<EndpointSubset> {
    let key = |port: &EndpointPort| (port.name.clone(), port.port, port.protocol.clone());
    let mut subsets = subsets.unwrap_or_default().to_vec();
    for subset in &mut subsets {
        subset.ports.iter_mut().for_each(|ports| ports.sort_by_key(key));
        for addresses in [&mut subset.addresses, &mut subset.not_ready_addresses].into_iter().flatten() {
            addresses.sort_by(|a, b| a.ip.cmp(&b.ip));
            for target in addresses.iter_mut().filter_map(|address| address.target_ref.as_mut()) {
                target.resource_version = None;
            }
        }
    }
    subsets.sort_by_cached_key(|subset| subset.ports.iter().flatten().map(key).collect::<Vec<_>>());
    subsets
}

fn subsets(service: &Service, backends: &[Backend]) -> (Vec<EndpointSubset>, bool) {
    let family = Family::of(service).into_iter().next().unwrap_or(Family::V4);
    let unready_too = publishes_unready(service);
    let mut found: Vec<(String, Vec<EndpointPort>, bool, EndpointAddress)> = backends
        .iter()
        .filter(|backend| {
            !pods::is_finished(&backend.pod) && (unready_too || !pods::is_terminating(&backend.pod))
        })
        .filter_map(|backend| {
            let pod = &backend.pod;
            let ports = ports(service, pod);
            let portless =
                service.spec.as_ref().is_none_or(|spec| spec.ports.as_ref().is_none_or(Vec::is_empty));
            if ports.is_empty() && !(portless && is_headless(service)) {
                return None;
            }
            let address = EndpointAddress {
                ip: addresses(pod, family).into_iter().next()?,
                hostname: hostname(service, pod),
                node_name: Some(pods::node_name(pod)).filter(|name| !name.is_empty()).map(str::to_owned),
                target_ref: Some(target(pod)),
            };
            let key = port_key(&ports);
            let ports = ports.into_iter().map(|port| EndpointPort {
                name: port.name.filter(|name| !name.is_empty()),
                port: port.port.unwrap_or_default(),
                protocol: port.protocol,
                app_protocol: port.app_protocol,
            });
            Some((key, ports.collect(), unready_too || pods::is_ready(pod), address))
        })
        .collect();
    // The ready ones first, so that they are what is kept if there are too many.
    found.sort_by(|(key, _, ready, address), (other_key, _, other_ready, other)| {
        (!ready, key, &address.ip).cmp(&(!other_ready, other_key, &other.ip))
    });
    let cut = found.len() > FULL;
    found.truncate(FULL);
    let mut subsets: BTreeMap<String, EndpointSubset> = BTreeMap::new();
    for (key, ports, ready, address) in found {
        let subset = subsets.entry(key).or_insert_with(|| EndpointSubset {
            ports: (!ports.is_empty()).then_some(ports),
            ..EndpointSubset::default()
        });
        let side = if ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        side.get_or_insert_default().push(address);
    }
    (subsets.into_values().collect(), cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn service() -> Service {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "n", "labels": {"x": "y"}},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "b", "port": 2}, {"name": "a", "port": 1}]}}))
        .unwrap()
    }

    fn backend(number: usize, ready: bool) -> Backend {
        let word = if ready { "True" } else { "False" };
        let pod = json!({"metadata": {"name": format!("p{number}"), "namespace": "n", "uid": format!("u{number}")},
            "spec": {"nodeName": "node", "containers": []},
            "status": {"phase": "Running", "podIP": format!("10.1.{}.{}", number / 250, number % 250),
                "conditions": [{"type": "Ready", "status": word}]}});
        Backend { pod: Arc::new(serde_json::from_value(pod).unwrap()), zone: None }
    }

    #[test]
    fn ready_and_unready_addresses_are_kept_apart_and_an_equal_object_is_not_written() {
        let backends = [backend(1, false), backend(2, true)];
        let wanted_ = wanted(&service(), &backends, None).unwrap();
        let value = serde_json::to_value(&wanted_).unwrap();
        assert_eq!(
            value["metadata"]["labels"],
            json!({"x": "y", "endpoints.kubernetes.io/managed-by": "endpoint-controller"})
        );
        assert_eq!(value["subsets"][0]["addresses"][0]["ip"], "10.1.0.2");
        assert_eq!(value["subsets"][0]["notReadyAddresses"][0]["targetRef"]["uid"], "u1");
        let mut turned: Value = value.clone();
        turned["subsets"][0]["ports"].as_array_mut().unwrap().reverse();
        let turned: Endpoints = serde_json::from_value(turned).unwrap();
        assert_eq!(wanted(&service(), &backends, Some(&turned)), None);
        assert!(wanted(&service(), &backends[..1], Some(&turned)).is_some());
    }

    #[test]
    fn too_many_addresses_are_cut_and_said_so() {
        let mut backends: Vec<_> = (0..1100).map(|number| backend(number, number >= 200)).collect();
        let large = wanted(&service(), &backends, None).unwrap();
        let subset = &large.subsets.as_ref().unwrap()[0];
        assert_eq!(
            (subset.addresses.as_ref().unwrap().len(), subset.not_ready_addresses.as_ref().unwrap().len()),
            (900, 100)
        );
        assert_eq!(large.annotations()[OVER_CAPACITY], "truncated");
        backends.truncate(500);
        let small = wanted(&service(), &backends, Some(&large)).unwrap();
        assert!(small.annotations().is_empty());
    }
}
