//! Operations that a fault keeps from ending.
//!
//! The document of such a resource has an operation without an end (`settles` is `None`), so that every view of it agrees:
//! the operation's status, the provisioning state, a deletion that waits. Which operations are held, and for how many polls,
//! is in memory. An operation without an end that is not held here, for example after a restart, ends with its next poll.

use std::collections::HashMap;

use aro_arm::ResourceId;
use aro_arm_server::Failure;
use aro_cloud_store::{Operation, key_of};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::cloud::{Cloud, GROUP, Stored};
use crate::faults::{Stick, Target};
use crate::provider::CloudRequest;

/// How many operations are held at once; further ones end as usual.
const MAX_HELD: usize = 1024;

/// Held operations by their id.
#[derive(Debug, Default)]
pub(crate) struct StuckOperations(Mutex<HashMap<String, Held>>);

#[derive(Debug)]
struct Held {
    resource: ResourceId,
    stick: Stick,
}

/// What a poll finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Poll {
    Held,
    /// This was the last poll that the operation was held for.
    LetGo,
    Unknown,
}

impl StuckOperations {
    fn hold(&self, operation: &str, resource: &ResourceId, stick: Stick) -> bool {
        let mut held = self.0.lock();
        if held.len() >= MAX_HELD {
            return false;
        }
        held.insert(operation.to_owned(), Held { resource: resource.clone(), stick });
        true
    }

    pub(crate) fn holds(&self, operation: Option<&Operation>) -> bool {
        operation.is_some_and(|operation| self.0.lock().contains_key(&operation.id))
    }

    /// Counts a poll.
    fn poll(&self, operation: &str) -> Poll {
        let mut held = self.0.lock();
        let Some(entry) = held.get_mut(operation) else { return Poll::Unknown };
        match &mut entry.stick.polls {
            None => return Poll::Held,
            Some(polls) if *polls > 0 => {
                *polls -= 1;
                return Poll::Held;
            }
            Some(_) => {}
        }
        held.remove(operation);
        Poll::LetGo
    }

    /// Lets go of the operations of a rule, or of all; returns what they work on.
    fn let_go(&self, rule: Option<u64>) -> Vec<ResourceId> {
        let mut held = self.0.lock();
        let ids: Vec<String> = held
            .iter()
            .filter(|(_, entry)| rule.is_none_or(|rule| entry.stick.rule == rule))
            .map(|(id, _)| id.clone())
            .collect();
        ids.iter().filter_map(|id| held.remove(id)).map(|entry| entry.resource).collect()
    }
}

impl Cloud {
    /// The operation that a write of a document begins.
    pub(crate) fn start_operation(
        &self,
        request: &CloudRequest,
        id: &ResourceId,
        creates: bool,
    ) -> Operation {
        let operation = Uuid::new_v4().to_string();
        let held = self.hold_operation(request, id, &operation);
        let settles = (!held).then(|| self.settles());
        Operation { id: operation, settles, creates }
    }

    /// Whether a fault holds the operation that begins now.
    pub(crate) fn hold_operation(&self, request: &CloudRequest, id: &ResourceId, operation: &str) -> bool {
        // A child inside of its parent's document is the resource that the caller names.
        let named = request.matched.resource_id();
        let target =
            Target { method: &request.method, id: if named.namespace().is_some() { &named } else { id } };
        let stick = self.0.options.faults.sticks(target);
        stick.is_some_and(|stick| self.0.stuck.hold(operation, id, stick))
    }

    /// Counts a poll of a resource whose operation has no end, and ends the operation if no fault holds it any more.
    pub(crate) async fn polled(&self, full: &str, stored: Stored) -> Result<Stored, Failure> {
        let Some(operation) = stored.value.operation.as_ref() else { return Ok(stored) };
        if operation.settles.is_some() {
            return Ok(stored);
        }
        match self.0.stuck.poll(&operation.id) {
            Poll::Held => return Ok(stored),
            // The deletion of a group has no end of its own and is under way.
            Poll::Unknown if full == GROUP => return Ok(stored),
            Poll::LetGo | Poll::Unknown => {}
        }
        let Ok(id) = ResourceId::parse(&stored.value.id) else { return Ok(stored) };
        Ok(self.end_operation(full, &id).await?.unwrap_or(stored))
    }

    /// Ends the operations that a rule holds, or all that are held.
    pub async fn release_operations(&self, rule: Option<u64>) -> Result<(), Failure> {
        for id in self.0.stuck.let_go(rule) {
            let full = if id.namespace().is_none() { GROUP.to_owned() } else { id.resource_type() };
            self.end_operation(&full, &id).await?;
        }
        Ok(())
    }

    async fn end_operation(&self, full: &str, id: &ResourceId) -> Result<Option<Stored>, Failure> {
        let (now, key, collection) = (self.now(), key_of(id), self.collection(full));
        let ended = collection.update(&key, |resource| {
            // The deletion of a group never has an end of its own.
            let endless = resource.operation.as_mut().filter(|operation| operation.settles.is_none());
            match endless {
                Some(operation) if full != GROUP => {
                    operation.settles = Some(now);
                    true
                }
                _ => false,
            }
        });
        let ended = ended.await?;
        if let Some(stored) = ended.as_ref().filter(|stored| stored.value.deleting) {
            self.0.deletions.add(stored.value.id.clone());
        }
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ResourceId {
        ResourceId::parse("/subscriptions/s/resourceGroups/g").unwrap()
    }

    #[test]
    fn an_operation_is_held_for_its_polls_and_then_let_go() {
        let stuck = StuckOperations::default();
        assert!(stuck.hold("a", &id(), Stick { rule: 1, polls: Some(2) }));
        let polls: Vec<Poll> = (0..4).map(|_| stuck.poll("a")).collect();
        assert_eq!(polls, [Poll::Held, Poll::Held, Poll::LetGo, Poll::Unknown]);
    }

    #[test]
    fn clearing_a_rule_lets_go_of_its_operations_only() {
        let stuck = StuckOperations::default();
        for (operation, rule) in [("a", 1), ("b", 2), ("c", 1)] {
            stuck.hold(operation, &id(), Stick { rule, polls: None });
        }
        assert_eq!(stuck.let_go(Some(1)).len(), 2);
        assert_eq!((stuck.poll("b"), stuck.poll("a")), (Poll::Held, Poll::Unknown));
        assert_eq!(stuck.let_go(None).len(), 1);
    }

    #[test]
    fn the_number_of_held_operations_is_bounded() {
        let stuck = StuckOperations::default();
        for n in 0..MAX_HELD {
            assert!(stuck.hold(&n.to_string(), &id(), Stick { rule: 1, polls: None }));
        }
        assert!(!stuck.hold("more", &id(), Stick { rule: 1, polls: None }));
    }
}
