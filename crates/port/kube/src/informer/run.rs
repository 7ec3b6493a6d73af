//! The list and watch that every informer runs on.

use std::collections::HashSet;
use std::fmt::Debug;
use std::time::Duration;

use aro_base::chain;
use aro_net::{Attempts, Backoff};
use aro_runtime::{Fault, Scope, TaskKind};
use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::confirm::confirm;
use super::{Informer, Kept, ObjectKey, key_of};

/// Delays between attempts of a watch that fails; one that delivers starts over.
pub(super) const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(10));

/// Receives what a list and its watch deliver, in order.
pub trait WatchSink<K>: Send + Sync + 'static {
    /// A list begins.
    fn list_begins(&self);
    /// The list has this object.
    fn listed(&self, object: K);
    /// The list is complete: what it lacks is gone.
    fn list_ends(&self);
    /// An object was created or changed.
    fn applied(&self, object: K);
    /// An object was deleted; this was its last state.
    fn deleted(&self, last: K);
    /// The list or watch failed, and starts again by itself.
    fn failed(&self, error: &watcher::Error);
}

/// Lists and watches until the future is dropped. Errors are retried; what the sink has stays.
pub async fn list_and_watch<K>(api: Api<K>, config: watcher::Config, sink: &impl WatchSink<K>)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = watch(api, config).backoff(WatchBackoff(BACKOFF.attempts()));
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => sink.list_begins(),
            Ok(Event::InitApply(object)) => sink.listed(object),
            Ok(Event::InitDone) => sink.list_ends(),
            Ok(Event::Apply(object)) => sink.applied(object),
            Ok(Event::Delete(object)) => sink.deleted(object),
            Err(error) => sink.failed(&error),
        }
    }
}

impl<K: Kept> Informer<K> {
    /// Lists and watches until the scope is cancelled. Errors are retried; what is cached stays cached.
    pub fn run(&self, api: Api<K>, config: watcher::Config, scope: &Scope) {
        let (client, scope_of_lookups) = (api.clone().into_client(), scope.clone());
        let sink = InformerSink {
            informer: self.clone(),
            listed: parking_lot::Mutex::default(),
            client,
            scope: scope_of_lookups,
        };
        scope.spawn(TaskKind::Helper, format!("watch-{}", self.kind), async move {
            list_and_watch(api, config, &sink).await;
            Ok::<_, Fault>(())
        });
    }
}

/// Fills an informer's cache and calls its subscribers.
struct InformerSink<K: Kept> {
    informer: Informer<K>,
    /// What the list under way has named.
    listed: parking_lot::Mutex<HashSet<ObjectKey>>,
    /// For objects in doubt.
    client: kube::Client,
    scope: Scope,
}

impl<K: Kept> WatchSink<K> for InformerSink<K> {
    fn list_begins(&self) {
        self.listed.lock().clear();
        self.informer.cache.list_begins();
    }

    fn listed(&self, object: K) {
        self.listed.lock().insert(key_of(&object));
        self.applied(object);
    }

    fn list_ends(&self) {
        let listed = std::mem::take(&mut *self.listed.lock());
        let unlisted = self.informer.cache.retain_listed(&listed);
        for change in &unlisted.gone {
            self.informer.notify(change);
        }
        if !unlisted.doubtful.is_empty() {
            let (informer, client) = (self.informer.clone(), self.client.clone());
            self.scope.spawn(TaskKind::Helper, format!("confirm-{}", informer.kind), async move {
                confirm(&informer, &client, unlisted.doubtful).await;
                Ok::<_, Fault>(())
            });
        }
        self.informer.synced.send_replace(true);
    }

    fn applied(&self, object: K) {
        if let Some(change) = self.informer.cache.apply(object) {
            self.informer.notify(&change);
        }
    }

    fn deleted(&self, last: K) {
        self.informer.notify(&self.informer.cache.delete(last));
    }

    fn failed(&self, error: &watcher::Error) {
        tracing::debug!(kind = %self.informer.kind, error = %chain(error), "watch ended; restarting");
    }
}

/// Our backoff as `kube` wants it.
struct WatchBackoff(Attempts);

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl kube::runtime::utils::Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.0.reset();
    }
}
