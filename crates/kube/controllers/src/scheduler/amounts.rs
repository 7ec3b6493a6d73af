//! Amounts of resources: what a pod asks for, what a node has.

use std::collections::BTreeMap;

use aro_kube_types::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

/// Amounts by resource. Processors count in thousandths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts {
    pub cpu: i64,
    pub memory: i64,
    pub pods: i64,
    /// Everything else: storage, devices, huge pages.
    pub others: BTreeMap<String, i64>,
}

impl Amounts {
    /// Of a node's allocatable, or a container's requests.
    pub fn of(list: Option<&BTreeMap<String, Text>>) -> Self {
        let mut amounts = Self::default();
        for (name, text) in list.into_iter().flatten() {
            // The API server accepts no other; what cannot be read counts as nothing.
            let Some(quantity) = Quantity::parse(&text.0) else { continue };
            let units = i64::try_from(quantity.units()).unwrap_or(i64::MAX);
            match name.as_str() {
                "cpu" => amounts.cpu = i64::try_from(quantity.milli()).unwrap_or(i64::MAX),
                "memory" => amounts.memory = units,
                "pods" => amounts.pods = units,
                _ => drop(amounts.others.insert(name.clone(), units)),
            }
        }
        amounts
    }

    /// What a pod needs: all containers together, or the largest of those that run before them, whichever is more.
    /// Init containers that stay count with everything that comes after them.
    pub fn of_pod(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else { return Self { pods: 1, ..Self::default() } };
        let mut all = Self::default();
        for container in &spec.containers {
            all.add(&requests(container));
        }
        let (mut staying, mut peak) = (Self::default(), Self::default());
        for container in spec.init_containers.iter().flatten() {
            let mut needs = requests(container);
            if container.restart_policy.as_deref() == Some("Always") {
                staying.add(&needs);
                needs = staying.clone();
            } else {
                needs.add(&staying);
            }
            peak.raise_to(&needs);
        }
        all.add(&staying);
        all.raise_to(&peak);
        if let Some(overhead) = &spec.overhead {
            all.add(&Self::of(Some(overhead)));
        }
        all.pods = 1;
        all
    }

    pub fn add(&mut self, other: &Self) {
        self.each(other, i64::saturating_add);
    }

    pub fn take(&mut self, other: &Self) {
        self.each(other, i64::saturating_sub);
    }

    fn raise_to(&mut self, other: &Self) {
        self.each(other, i64::max);
    }

    fn each(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        self.cpu = with(self.cpu, other.cpu);
        self.memory = with(self.memory, other.memory);
        self.pods = with(self.pods, other.pods);
        for (name, amount) in &other.others {
            let own = self.others.entry(name.clone()).or_default();
            *own = with(*own, *amount);
        }
    }

    /// The first resource of which there is too little for `wanted` on top of `promised`.
    pub fn lacks(&self, promised: &Self, wanted: &Self) -> Option<String> {
        let short = |have: i64, gone: i64, want: i64| want > 0 && want > have.saturating_sub(gone);
        if short(self.pods, promised.pods, wanted.pods) {
            return Some("Too many pods".to_owned());
        }
        if short(self.cpu, promised.cpu, wanted.cpu) {
            return Some("Insufficient cpu".to_owned());
        }
        if short(self.memory, promised.memory, wanted.memory) {
            return Some("Insufficient memory".to_owned());
        }
        let of = |amounts: &Self, name: &str| amounts.others.get(name).copied().unwrap_or_default();
        let missing =
            wanted.others.iter().find(|(name, want)| short(of(self, name), of(promised, name), **want));
        missing.map(|(name, _)| format!("Insufficient {name}"))
    }

    /// How full it would be, in thousandths of the resource that is used most.
    pub fn fullness(&self, promised: &Self, wanted: &Self) -> i64 {
        let share = |have: i64, gone: i64, want: i64| {
            if have <= 0 {
                0
            } else {
                ((i128::from(gone) + i128::from(want)) * 1000 / i128::from(have)) as i64
            }
        };
        let cpu = share(self.cpu, promised.cpu, wanted.cpu);
        let memory = share(self.memory, promised.memory, wanted.memory);
        let pods = share(self.pods, promised.pods, wanted.pods);
        cpu.max(memory).max(pods)
    }
}

fn requests(container: &Container) -> Amounts {
    Amounts::of(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}
