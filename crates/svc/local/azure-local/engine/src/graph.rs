//! Which resources refer to which.
//!
//! The documents hold the references; this index answers the reverse question in memory: what refers to this resource? It also
//! keeps a reference from being created to a resource whose deletion is being committed at the same time: both sides reserve
//! here, under one lock, before they write, and release when the write fails.

use std::collections::{BTreeSet, HashMap, HashSet};

use parking_lot::Mutex;

/// Ids are in lower case throughout.
#[derive(Debug, Default)]
pub struct Graph(Mutex<Edges>);

#[derive(Debug, Default)]
struct Edges {
    /// From a target to what refers to it.
    referrers: HashMap<String, BTreeSet<String>>,
    /// What is being deleted right now.
    going: HashSet<String>,
}

/// Why something cannot be reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// A resource still refers to one that would go.
    Referred { target: String, by: String },
    /// The resource that would be referred to is being deleted.
    Going(String),
}

impl Graph {
    /// Records the references of a document that exists.
    pub fn load(&self, from: &str, references: &BTreeSet<String>) {
        let mut edges = self.0.lock();
        for target in references {
            edges.referrers.entry(target.clone()).or_default().insert(from.to_owned());
        }
    }

    /// Reserves the change of one document: references that are new, and ids (its own, its children's) that go.
    pub fn reserve(
        &self,
        from: &str,
        new: &BTreeSet<String>,
        removed_ids: &BTreeSet<String>,
    ) -> Result<(), Held> {
        let mut edges = self.0.lock();
        if let Some(going) = new.iter().find(|target| edges.going.contains(*target)) {
            return Err(Held::Going(going.clone()));
        }
        for id in removed_ids {
            let by = edges.referrers.get(id).and_then(|by| by.iter().find(|by| *by != from));
            if let Some(by) = by {
                return Err(Held::Referred { target: id.clone(), by: by.clone() });
            }
        }
        edges.going.extend(removed_ids.iter().cloned());
        for target in new {
            edges.referrers.entry(target.clone()).or_default().insert(from.to_owned());
        }
        Ok(())
    }

    /// Ends a reservation: the write happened, `gone` references exist no longer.
    pub fn commit(&self, from: &str, gone: &BTreeSet<String>, removed_ids: &BTreeSet<String>) {
        let mut edges = self.0.lock();
        edges.remove(from, gone);
        for id in removed_ids {
            edges.going.remove(id);
        }
    }

    /// Ends a reservation: the write did not happen.
    pub fn release(&self, from: &str, new: &BTreeSet<String>, removed_ids: &BTreeSet<String>) {
        self.commit(from, new, removed_ids);
    }

    /// What refers to a resource.
    pub fn referrers(&self, target: &str) -> Vec<String> {
        self.0.lock().referrers.get(target).into_iter().flatten().cloned().collect()
    }
}

impl Edges {
    fn remove(&mut self, from: &str, targets: &BTreeSet<String>) {
        for target in targets {
            if let Some(by) = self.referrers.get_mut(target) {
                by.remove(from);
                if by.is_empty() {
                    self.referrers.remove(target);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn what_is_referred_to_cannot_go_until_the_reference_is_gone() {
        let graph = Graph::default();
        graph.reserve("nic", &set(&["subnet"]), &set(&[])).unwrap();
        graph.commit("nic", &set(&[]), &set(&[]));
        let held = graph.reserve("vnet", &set(&[]), &set(&["subnet"])).unwrap_err();
        assert_eq!(held, Held::Referred { target: "subnet".to_owned(), by: "nic".to_owned() });
        graph.reserve("nic", &set(&[]), &set(&["nic"])).unwrap();
        graph.commit("nic", &set(&["subnet"]), &set(&["nic"]));
        graph.reserve("vnet", &set(&[]), &set(&["subnet"])).unwrap();
    }

    #[test]
    fn a_reference_to_what_is_being_deleted_is_refused() {
        let graph = Graph::default();
        graph.reserve("vnet", &set(&[]), &set(&["subnet"])).unwrap();
        assert_eq!(graph.reserve("nic", &set(&["subnet"]), &set(&[])), Err(Held::Going("subnet".to_owned())));
        graph.release("vnet", &set(&[]), &set(&["subnet"]));
        graph.reserve("nic", &set(&["subnet"]), &set(&[])).unwrap();
        assert_eq!(graph.referrers("subnet"), ["nic"]);
        graph.release("nic", &set(&["subnet"]), &set(&[]));
        assert!(graph.referrers("subnet").is_empty());
    }
}
