//! Which slices have to change. Pure.
//!
//! An endpoint stays in the slice it is in: watchers of slices receive as few changes as possible.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use super::desired::{Backend, Family, Group, groups, is_headless, port_key};
use crate::pods::controller_reference;

/// Endpoints in one slice, at most.
pub const FULL: usize = 100;
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub const MANAGER: &str = "endpointslice-controller.k8s.io";
pub const HEADLESS: &str = "service.kubernetes.io/headless";

/// What has to be written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub create: Vec<EndpointSlice>,
    pub update: Vec<EndpointSlice>,
    pub delete: Vec<Arc<EndpointSlice>>,
}

/// Decides. `slices` are those of the Service that this controller manages.
pub fn plan(service: &Service, backends: &[Backend], slices: &[Arc<EndpointSlice>]) -> Plan {
    let families = Family::of(service);
    let mut plan = Plan::default();
    for slice in slices {
        if families.iter().all(|family| family.name() != slice.address_type) {
            plan.delete.push(slice.clone());
        }
    }
    for family in families {
        let of_family: Vec<_> =
            slices.iter().filter(|slice| slice.address_type == family.name()).cloned().collect();
        let part = plan_family(service, groups(service, backends, family), &of_family, family);
        plan.create.extend(part.create);
        plan.update.extend(part.update);
        plan.delete.extend(part.delete);
    }
    plan
}

fn plan_family(
    service: &Service,
    groups: BTreeMap<String, Group>,
    slices: &[Arc<EndpointSlice>],
    family: Family,
) -> Plan {
    let mut plan = Plan::default();
    let mut by_ports: HashMap<String, Vec<&Arc<EndpointSlice>>> = HashMap::new();
    for slice in slices {
        if is_owned(slice, service) && slice.metadata.deletion_timestamp.is_none() {
            by_ports.entry(port_key(slice.ports.as_deref().unwrap_or_default())).or_default().push(slice);
        } else {
            // Of an earlier Service of this name.
            plan.delete.push(slice.clone());
        }
    }
    for (key, group) in groups {
        let known = by_ports.remove(&key).unwrap_or_default();
        plan_group(service, group, &known, family, &mut plan);
    }
    plan.delete.extend(by_ports.into_values().flatten().cloned());
    if plan.delete.len() == slices.len() && plan.create.is_empty() {
        keep_one(service, family, &mut plan);
    }
    reuse(service, &mut plan);
    plan
}

fn plan_group(
    service: &Service,
    group: Group,
    known: &[&Arc<EndpointSlice>],
    family: Family,
    plan: &mut Plan,
) {
    let mut missing: BTreeMap<String, Endpoint> =
        group.endpoints.into_iter().map(|endpoint| (identity(&endpoint), endpoint)).collect();
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for slice in known {
        let kept: Vec<Endpoint> = slice
            .endpoints
            .iter()
            .flatten()
            .filter_map(|endpoint| missing.remove(&identity(endpoint)))
            .collect();
        let labels = labels(service);
        let same = slice.endpoints.as_deref().unwrap_or_default() == kept;
        if same && slice.metadata.labels.as_ref() == Some(&labels) {
            unchanged.push(*slice);
        } else if kept.is_empty() {
            plan.delete.push(Arc::clone(slice));
        } else {
            let mut slice = EndpointSlice::clone(slice);
            slice.endpoints = Some(kept);
            slice.metadata.labels = Some(labels);
            changed.push(slice);
        }
    }
    // Those that are written anyway take what they can, the fullest first.
    changed.sort_by_key(|slice| std::cmp::Reverse(count(slice)));
    for slice in &mut changed {
        fill(slice, &mut missing);
    }
    // A rest goes into the slice it fills best, or into new ones.
    let fits = |slice: &&&Arc<EndpointSlice>| count(slice) + missing.len() <= FULL;
    let best = unchanged.iter().filter(fits).max_by_key(|slice| count(slice));
    if !missing.is_empty()
        && let Some(best) = best
    {
        let mut slice = EndpointSlice::clone(best);
        fill(&mut slice, &mut missing);
        changed.push(slice);
    }
    while !missing.is_empty() {
        let mut slice = new_slice(service, family);
        slice.ports = Some(group.ports.clone());
        fill(&mut slice, &mut missing);
        plan.create.push(slice);
    }
    plan.update.extend(changed);
}

/// A Service with nothing behind it has one empty slice.
fn keep_one(service: &Service, family: Family, plan: &mut Plan) {
    let placeholder = new_slice(service, family);
    let empty = |slice: &EndpointSlice| {
        count(slice) == 0
            && slice.ports.as_ref().is_none_or(Vec::is_empty)
            && is_owned(slice, service)
            && slice.metadata.deletion_timestamp.is_none()
            && slice.metadata.labels == placeholder.metadata.labels
    };
    if let Some(position) = plan.delete.iter().position(|slice| empty(slice)) {
        plan.delete.remove(position);
    } else {
        plan.create.push(placeholder);
    }
}

/// What would be deleted becomes what would be created. All are of one family.
fn reuse(service: &Service, plan: &mut Plan) {
    let mut left = Vec::new();
    for old in std::mem::take(&mut plan.delete) {
        let usable = is_owned(&old, service) && old.metadata.deletion_timestamp.is_none();
        if usable && let Some(new) = plan.create.pop() {
            let mut slice = EndpointSlice::clone(&old);
            slice.endpoints = new.endpoints;
            slice.ports = new.ports;
            slice.metadata.labels = new.metadata.labels;
            plan.update.push(slice);
        } else {
            left.push(old);
        }
    }
    plan.delete = left;
}

fn fill(slice: &mut EndpointSlice, missing: &mut BTreeMap<String, Endpoint>) {
    let endpoints = slice.endpoints.get_or_insert_default();
    while endpoints.len() < FULL
        && let Some((_, endpoint)) = missing.pop_first()
    {
        endpoints.push(endpoint);
    }
}

fn count(slice: &EndpointSlice) -> usize {
    slice.endpoints.as_ref().map_or(0, Vec::len)
}

/// What makes two endpoints the same one.
fn identity(endpoint: &Endpoint) -> String {
    let target = endpoint.target_ref.as_ref().and_then(|target| target.uid.as_deref()).unwrap_or_default();
    let host = endpoint.hostname.as_deref().unwrap_or_default();
    format!("{} {host} {target}", endpoint.addresses.join(","))
}

fn is_owned(slice: &EndpointSlice, service: &Service) -> bool {
    let owners = slice.owner_references();
    owners.iter().any(|owner| owner.kind == "Service" && Some(&owner.uid) == service.metadata.uid.as_ref())
}

/// The Service's own labels and those by which a slice is found.
fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.name_any());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

fn new_slice(service: &Service, family: Family) -> EndpointSlice {
    EndpointSlice {
        address_type: family.name().to_owned(),
        endpoints: Some(Vec::new()),
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", service.name_any())),
            namespace: service.namespace(),
            labels: Some(labels(service)),
            owner_references: Some(vec![controller_reference(service)]),
            ..ObjectMeta::default()
        },
        ports: Some(Vec::new()),
    }
}

#[cfg(test)]
mod tests;
