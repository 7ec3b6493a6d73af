//! What is promised on which node.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;

use super::amounts::Amounts;
use super::fit::{Traits, refuses};
use super::taints_of;
use crate::pods;

/// Nodes with their room, and pods with their promises.
#[derive(Debug, Default)]
pub struct Ledger {
    nodes: HashMap<String, Room>,
    /// The order in which nodes are asked; begins elsewhere each time.
    order: Vec<String>,
    next: usize,
    pods: HashMap<String, Promise>,
}

#[derive(Debug, Default)]
struct Room {
    /// Whether the node itself is known; pods may be seen before it.
    known: bool,
    traits: Traits,
    has: Amounts,
    promised: Amounts,
}

#[derive(Debug)]
struct Promise {
    node: String,
    amounts: Amounts,
    /// The API server has said so, too.
    bound: bool,
}

/// Enough nodes to choose from.
const CHOICE: usize = 32;

impl Ledger {
    /// A node is there. Returns whether more may fit now than before.
    pub fn node(&mut self, node: &Node) -> bool {
        let name = node.name_any();
        let has = Amounts::of(node.status.as_ref().and_then(|status| status.allocatable.as_ref()));
        let traits = Traits { labels: node.labels().clone(), taints: taints_of(node) };
        let room = self.nodes.entry(name.clone()).or_default();
        let news = !room.known || room.has != has || room.traits != traits;
        if !room.known {
            self.order.push(name);
        }
        (room.known, room.has, room.traits) = (true, has, traits);
        news
    }

    /// A node is gone.
    pub fn node_gone(&mut self, name: &str) -> bool {
        if let Some(room) = self.nodes.get_mut(name) {
            room.known = false;
        }
        self.order.retain(|known| known != name);
        // Its pods may still be counted; they go one by one.
        self.forget_if_empty(name);
        false
    }

    /// A pod is there. Returns whether room became free.
    pub fn saw(&mut self, pod: &Pod) -> bool {
        let uid = pod.uid().unwrap_or_default();
        let node = pods::node_name(pod);
        if pods::is_finished(pod) {
            return self.ended(&uid);
        }
        if node.is_empty() {
            return false;
        }
        if let Some(known) = self.pods.get_mut(&uid)
            && known.node == node
        {
            known.bound = true;
            return false;
        }
        // Bound by another scheduler, or to another node than assumed.
        let freed = self.ended(&uid);
        self.note(uid, node.to_owned(), Amounts::of_pod(pod), true);
        freed
    }

    /// The API server bound it.
    pub fn bound(&mut self, uid: &str) {
        if let Some(promise) = self.pods.get_mut(uid) {
            promise.bound = true;
        }
    }

    pub fn is_bound(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(|promise| promise.bound)
    }

    /// The API server did not bind it; unless another scheduler did, the room is free again.
    pub fn take_back(&mut self, uid: &str) {
        if !self.is_bound(uid) {
            self.ended(uid);
        }
    }

    /// A pod needs its room no more.
    pub fn ended(&mut self, uid: &str) -> bool {
        let Some(promise) = self.pods.remove(uid) else { return false };
        if let Some(room) = self.nodes.get_mut(&promise.node) {
            room.promised.take(&promise.amounts);
        }
        self.forget_if_empty(&promise.node);
        true
    }

    fn forget_if_empty(&mut self, node: &str) {
        if self.nodes.get(node).is_some_and(|room| !room.known && room.promised.pods <= 0) {
            self.nodes.remove(node);
        }
    }

    fn note(&mut self, uid: String, node: String, amounts: Amounts, bound: bool) {
        self.nodes.entry(node.clone()).or_default().promised.add(&amounts);
        self.pods.insert(uid, Promise { node, amounts, bound });
    }

    /// Finds a node for the pod and promises the room; else says why there is none, in upstream's words.
    pub fn promise(&mut self, pod: &Pod) -> Result<String, String> {
        let uid = pod.uid().unwrap_or_default();
        self.ended(&uid);
        let wanted = Amounts::of_pod(pod);
        let mut best: Option<(i64, &str)> = None;
        let mut found = 0;
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let count = self.order.len();
        for step in 0..count {
            let name = self.order[(self.next + step) % count].as_str();
            let Some(room) = self.nodes.get(name) else { continue };
            let refusal =
                refuses(name, &room.traits, pod).or_else(|| room.has.lacks(&room.promised, &wanted));
            if let Some(why) = refusal {
                *reasons.entry(why).or_default() += 1;
                continue;
            }
            let fullness = room.has.fullness(&room.promised, &wanted);
            if best.is_none_or(|(least, _)| fullness < least) {
                best = Some((fullness, name));
            }
            found += 1;
            if found >= CHOICE {
                break;
            }
        }
        let Some((_, node)) = best else { return Err(explain(count, &reasons)) };
        let node = node.to_owned();
        self.next = (self.next + found.max(1)) % count.max(1);
        self.note(uid, node.clone(), wanted, false);
        Ok(node)
    }
}

fn explain(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut parts: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    parts.sort();
    format!("0/{nodes} nodes are available: {}.", parts.join(", "))
}
