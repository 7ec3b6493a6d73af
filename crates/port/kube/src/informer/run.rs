//! The watch that keeps a cache up to date.

use std::collections::HashSet;
use std::time::Duration;

use aro_base::chain;
use aro_runtime::{Fault, Scope, TaskKind};
use futures::StreamExt as _;
use kube::Api;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};

use super::{Informer, Kept, key_of};

impl<K: Kept> Informer<K> {
    /// Lists and watches until the scope is cancelled. Errors are waited out; what was known stays known.
    pub fn run(&self, api: Api<K>, config: watcher::Config, scope: &Scope) {
        let informer = self.clone();
        scope.spawn(TaskKind::Helper, format!("watch-{}", K::kind(&())), async move {
            informer.follow(api, config).await;
            Ok::<_, Fault>(())
        });
    }

    async fn follow(self, api: Api<K>, config: watcher::Config) {
        let events = watch(api, config).backoff(Patience::default());
        let mut events = std::pin::pin!(events);
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => {
                    listed.clear();
                    self.cache.listing();
                }
                Ok(Event::InitApply(object)) => {
                    listed.insert(key_of(&object));
                    self.take(object);
                }
                Ok(Event::InitDone) => {
                    for change in self.cache.keep_only(&listed) {
                        self.tell(&change);
                    }
                    listed = HashSet::new();
                    self.synced.send_replace(true);
                }
                Ok(Event::Apply(object)) => self.take(object),
                Ok(Event::Delete(object)) => self.tell(&self.cache.gone(object)),
                // The watcher starts again by itself.
                Err(error) => {
                    tracing::debug!(kind = %K::kind(&()), error = %chain(&error), "a watch ended and starts again");
                }
            }
        }
    }

    fn take(&self, object: K) {
        if let Some(change) = self.cache.seen(object) {
            self.tell(&change);
        }
    }
}

/// Pauses between tries of a watch that fails: 50 ms, doubling to 10 s; a working one starts over.
#[derive(Debug, Clone)]
pub struct Patience {
    next: Duration,
}

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(10);

impl Default for Patience {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Iterator for Patience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        Some(pause)
    }
}

impl kube::runtime::utils::Backoff for Patience {
    fn reset(&mut self) {
        self.next = FIRST;
    }
}
