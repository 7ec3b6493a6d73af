//! Who is ready, who is not, and why not.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// The readiness of one role or of a whole stack: ready when every named component is.
///
/// Components are declared before they are ready, so that a component that has not reported yet is not mistaken for ready.
/// Cloning shares it.
#[derive(Debug, Clone)]
pub struct Readiness(Arc<watch::Sender<BTreeMap<String, Option<String>>>>);

/// The handle with which one component says how it is.
#[derive(Debug, Clone)]
pub struct Component {
    name: String,
    all: Readiness,
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

impl Readiness {
    /// Without components, therefore ready.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(BTreeMap::new())))
    }

    /// Declares a component; it is not ready until it reports readiness.
    pub fn component(&self, name: impl Into<String>) -> Component {
        let name = name.into();
        self.0.send_modify(|all| {
            all.insert(name.clone(), Some("starting".to_owned()));
        });
        Component { name, all: self.clone() }
    }

    /// Whether every component is ready.
    pub fn is_ready(&self) -> bool {
        self.0.borrow().values().all(Option::is_none)
    }

    /// The components that are not ready, each with its reason.
    pub fn waiting(&self) -> Vec<(String, String)> {
        let all = self.0.borrow();
        all.iter().filter_map(|(name, why)| Some((name.clone(), why.clone()?))).collect()
    }

    /// Returns when readiness is no longer what the caller thinks it is.
    pub async fn differs_from(&self, known: bool) {
        let mut changes = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail while we do.
        let _ = changes.wait_for(|all| all.values().all(Option::is_none) != known).await;
    }

    /// Returns when every component is ready.
    pub async fn ready(&self) {
        let mut changes = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail while we do.
        let _ = changes.wait_for(|all| all.values().all(Option::is_none)).await;
    }
}

impl Component {
    /// Says "ready".
    pub fn ready(&self) {
        self.set(None);
    }

    /// Says "not ready", and why.
    pub fn not_ready(&self, why: impl Into<String>) {
        self.set(Some(why.into()));
    }

    fn set(&self, now: Option<String>) {
        self.all.0.send_if_modified(|all| match all.get_mut(&self.name) {
            Some(slot) if *slot != now => {
                *slot = now;
                true
            }
            _ => false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ready_means_every_component_said_so() {
        let readiness = Readiness::new();
        let (store, frontend) = (readiness.component("store"), readiness.component("frontend"));
        assert!(!readiness.is_ready());
        store.ready();
        frontend.not_ready("no subscription cache yet");
        assert_eq!(readiness.waiting(), [("frontend".to_owned(), "no subscription cache yet".to_owned())]);
        frontend.ready();
        readiness.ready().await;
        store.not_ready("connection lost");
        assert!(!readiness.is_ready());
    }
}
