//! Which batches go into the next transaction. Decides only; [`crate::writer`] acts.
//!
//! What waits is taken in the order it came, with these bounds: a transaction has room for [`MAX_OPS`] operations in the
//! feed's order (ADR 0012); no document is named twice, so that batches of one transaction cannot depend on each other;
//! and a partition is in one transaction at a time, so that transactions of this process never meet at a lock.
//!
//! Invariant: while fewer than [`MAX_RUNNING`] transactions run, everything that waits belongs to a partition that one of
//! them holds. So nothing ever waits for company, and a group is what came while its partitions or all places were taken.

use std::collections::{HashSet, VecDeque};

use aro_store::{Batch, Container, DocId, PartitionKey, StoreError, Written};
use tokio::sync::oneshot;

/// Places per transaction in the feed's order, without the first: operations are numbered from one.
pub(crate) const MAX_OPS: usize = 127;

/// Transactions at once. Few make large groups and cheap writes; more than one keeps the server busy during a flush.
pub(crate) const MAX_RUNNING: usize = 3;

/// A transaction that has so much to write gets no more company.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What a lock is for.
pub(crate) type Partition = (Container, PartitionKey);

/// A batch on its way, and who waits for it.
pub(crate) struct Waiting {
    pub(crate) batch: Batch,
    /// The digest of each operation's body.
    pub(crate) marks: Vec<Option<Vec<u8>>>,
    pub(crate) reply: oneshot::Sender<Result<Vec<Written>, StoreError>>,
}

impl Waiting {
    pub(crate) fn partition(&self) -> Partition {
        (self.batch.container(), self.batch.partition().clone())
    }

    fn bytes(&self) -> usize {
        self.batch
            .ops()
            .iter()
            .map(|op| match op {
                aro_store::Op::Create(new) | aro_store::Op::Replace(new, _) => new.body.get().len(),
                aro_store::Op::Delete(..) | aro_store::Op::Check(..) => 0,
            })
            .sum()
    }
}

/// What waits, and what is taken.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    taken: HashSet<Partition>,
    running: usize,
    closed: bool,
}

impl Queue {
    /// Adds a batch; returns whether a group can start now.
    pub(crate) fn push(&mut self, waiting: Waiting) -> bool {
        if self.closed {
            return false;
        }
        let free = self.running < MAX_RUNNING && !self.taken.contains(&waiting.partition());
        self.waiting.push_back(waiting);
        free
    }

    /// Takes the next group, with its partitions and one of the places.
    pub(crate) fn next_group(&mut self) -> Option<Vec<Waiting>> {
        if self.running >= MAX_RUNNING || self.waiting.is_empty() {
            return None;
        }
        let mut group = Group::default();
        let mut left = VecDeque::with_capacity(self.waiting.len());
        let mut queue = std::mem::take(&mut self.waiting).into_iter();
        for next in queue.by_ref() {
            if next.reply.is_closed() {
                // The caller is gone, and nothing was tried yet.
                continue;
            }
            if group.is_full_for(&next) {
                left.push_back(next);
                break;
            }
            if self.taken.contains(&next.partition()) || !group.admits(&next) {
                left.push_back(next);
            } else {
                group.add(next);
            }
        }
        left.extend(queue);
        self.waiting = left;
        if group.batches.is_empty() {
            return None;
        }
        self.taken.extend(group.partitions);
        self.running += 1;
        Some(group.batches)
    }

    /// A transaction is over, or the rest of it waits for a lock elsewhere.
    pub(crate) fn free_place(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Releases partitions.
    pub(crate) fn free(&mut self, partitions: &[Partition]) {
        for partition in partitions {
            self.taken.remove(partition);
        }
    }

    /// Nothing starts after this; waiting callers lose their reply channel.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }
}

#[derive(Default)]
struct Group {
    batches: Vec<Waiting>,
    partitions: HashSet<Partition>,
    /// Partitions a batch of which has to wait for the next group: later ones do not overtake it.
    passed: HashSet<Partition>,
    documents: HashSet<(Partition, DocId)>,
    ops: usize,
    bytes: usize,
}

impl Group {
    fn is_full_for(&self, next: &Waiting) -> bool {
        self.ops + next.batch.len() > MAX_OPS || self.bytes > MAX_BYTES
    }

    fn admits(&mut self, next: &Waiting) -> bool {
        let partition = next.partition();
        let again =
            next.batch.ops().iter().any(|op| self.documents.contains(&(partition.clone(), op.id().clone())));
        if again {
            self.passed.insert(partition.clone());
        }
        !again && !self.passed.contains(&partition)
    }

    fn add(&mut self, next: Waiting) {
        let partition = next.partition();
        self.ops += next.batch.len();
        self.bytes += next.bytes();
        self.documents.extend(next.batch.ops().iter().map(|op| (partition.clone(), op.id().clone())));
        self.partitions.insert(partition);
        self.batches.push(next);
    }
}

#[cfg(test)]
mod tests {
    use aro_base::ETag;
    use aro_store::Op;

    use super::*;

    type Answer = oneshot::Receiver<Result<Vec<Written>, StoreError>>;

    fn waiting(partition: &str, ids: &[String]) -> (Waiting, Answer) {
        let mut batch = Batch::new(Container::new("things"), PartitionKey::new(partition));
        for id in ids {
            batch.push(Op::Check(DocId::new(id), ETag::new("1-0")));
        }
        let (reply, answer) = oneshot::channel();
        (Waiting { batch, marks: Vec::new(), reply }, answer)
    }

    /// Pushes batches written as `partition/id`; the answers keep them alive.
    fn push(queue: &mut Queue, batches: &[&str]) -> Vec<Answer> {
        let one = |text: &&str| {
            let (partition, id) = text.split_once('/').expect("partition/id");
            let (waiting, answer) = waiting(partition, &[id.to_owned()]);
            queue.push(waiting);
            answer
        };
        batches.iter().map(one).collect()
    }

    fn names(group: Option<Vec<Waiting>>) -> Vec<String> {
        let name = |one: Waiting| format!("{}/{}", one.batch.partition().as_str(), one.batch.ops()[0].id());
        group.unwrap_or_default().into_iter().map(name).collect()
    }

    #[test]
    fn a_batch_alone_starts_at_once_and_others_of_its_partition_gather_meanwhile() {
        let mut queue = Queue::default();
        let _alive = push(&mut queue, &["p/a"]);
        assert_eq!(names(queue.next_group()), ["p/a"]);
        let _alive = push(&mut queue, &["p/b", "p/c"]);
        assert!(queue.next_group().is_none(), "their partition is taken");
        let _alive = push(&mut queue, &["q/a"]);
        assert_eq!(names(queue.next_group()), ["q/a"], "another one is not");
        queue.free_place();
        queue.free(&[(Container::new("things"), PartitionKey::new("p"))]);
        assert_eq!(names(queue.next_group()), ["p/b", "p/c"]);
    }

    #[test]
    fn a_document_is_in_a_group_once_and_later_batches_do_not_overtake() {
        let mut queue = Queue::default();
        let _alive = push(&mut queue, &["p/a", "q/a", "p/a", "p/b", "q/b"]);
        assert_eq!(names(queue.next_group()), ["p/a", "q/a", "q/b"]);
        queue.free(&[(Container::new("things"), PartitionKey::new("p"))]);
        assert_eq!(names(queue.next_group()), ["p/a", "p/b"]);
    }

    #[test]
    fn a_group_has_room_for_so_many_operations_and_so_many_run() {
        let mut queue = Queue::default();
        let mut alive = Vec::new();
        for (partition, size) in [("p", 100), ("q", 27), ("r", 1), ("s", 100), ("t", 1), ("u", 100)] {
            let ids: Vec<String> = (0..size).map(|n| n.to_string()).collect();
            let (waiting, answer) = waiting(partition, &ids);
            queue.push(waiting);
            alive.push(answer);
        }
        assert_eq!(names(queue.next_group()), ["p/0", "q/0"]);
        assert_eq!(names(queue.next_group()), ["r/0", "s/0", "t/0"]);
        assert_eq!(names(queue.next_group()), ["u/0"]);
        let _alive = push(&mut queue, &["v/a"]);
        assert!(queue.next_group().is_none(), "all places are taken");
        queue.free_place();
        assert_eq!(names(queue.next_group()), ["v/a"]);
    }

    #[test]
    fn who_has_gone_is_passed_over_and_nothing_starts_once_closed() {
        let mut queue = Queue::default();
        drop(push(&mut queue, &["p/a"]));
        let _alive = push(&mut queue, &["p/b"]);
        assert_eq!(names(queue.next_group()), ["p/b"]);
        let mut late = push(&mut queue, &["q/a"]);
        queue.close();
        assert!(queue.next_group().is_none());
        assert!(late.remove(0).try_recv().is_err(), "its reply channel is closed");
    }
}
