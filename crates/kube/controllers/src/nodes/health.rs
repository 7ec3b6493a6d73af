//! When nodes last gave a sign of life, by our own clock.
//!
//! Clocks of nodes are not trusted: what counts is when we saw that a lease was renewed or a status posted. A node we
//! have never seen counts as alive when we first look, so that no node is lost because this controller was down.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Debug, Clone, Copy)]
struct Sign {
    at: Instant,
    renewed: Option<Timestamp>,
    posted: Option<Timestamp>,
}

/// Signs of life. Cloning gives another handle to the same ones.
#[derive(Debug, Clone, Default)]
pub struct Health {
    nodes: Arc<Mutex<HashMap<String, Sign>>>,
}

impl Health {
    /// A lease was seen.
    pub fn renewed(&self, node: &str, renewed: Option<Timestamp>, now: Instant) {
        self.sign(node, now, |sign| std::mem::replace(&mut sign.renewed, renewed) != renewed);
    }

    /// A status was seen.
    pub fn posted(&self, node: &str, posted: Option<Timestamp>, now: Instant) {
        self.sign(node, now, |sign| std::mem::replace(&mut sign.posted, posted) != posted);
    }

    fn sign(&self, node: &str, now: Instant, is_new: impl FnOnce(&mut Sign) -> bool) {
        let mut nodes = self.nodes.lock();
        let first = Sign { at: now, renewed: None, posted: None };
        let sign = nodes.entry(node.to_owned()).or_insert(first);
        if is_new(sign) {
            sign.at = now;
        }
    }

    /// How long a node may still be silent; nothing if that is over.
    pub fn left(&self, node: &str, grace: Duration, now: Instant) -> Duration {
        let nodes = self.nodes.lock();
        let at = nodes.get(node).map_or(now, |sign| sign.at);
        grace.saturating_sub(now.saturating_duration_since(at))
    }

    pub fn forget(&self, node: &str) {
        self.nodes.lock().remove(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(40);

    fn second(number: i64) -> Option<Timestamp> {
        Timestamp::from_second(number).ok()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_new_sign_counts_and_only_by_our_clock() {
        let (health, start) = (Health::default(), Instant::now());
        let later = |seconds| start + Duration::from_secs(seconds);
        // A lease from long ago: we start counting when we see it.
        health.renewed("n", second(-10_000), start);
        assert_eq!(health.left("n", GRACE, later(30)), Duration::from_secs(10));
        health.renewed("n", second(-10_000), later(30));
        assert_eq!(health.left("n", GRACE, later(39)), Duration::from_secs(1), "the same again is no sign");
        health.posted("n", second(1), later(35));
        assert_eq!(health.left("n", GRACE, later(35)), GRACE);
        assert_eq!(health.left("n", GRACE, later(100)), Duration::ZERO);
        health.renewed("n", second(2), later(100));
        assert_eq!(health.left("n", GRACE, later(100)), GRACE);
        assert_eq!(health.left("unseen", GRACE, later(100)), GRACE);
    }
}
