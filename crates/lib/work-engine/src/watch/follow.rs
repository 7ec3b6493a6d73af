//! A watch as the sink of a list and watch.

use std::sync::Arc;

use aro_base::chain;
use aro_kube::informer::{WatchSink, list_and_watch};
use aro_runtime::{Fault, Scope, TaskKind};
use kube::Api;
use kube::runtime::watcher;

use super::{Sight, Watch};
use crate::failure::code;
use crate::live::Live;

/// Watches a resource until no work wants an object of it.
pub(super) fn start(watch: &Arc<Watch>, scope: &Scope) {
    let watch = watch.clone();
    let name = format!("watch-{}", watch.kind.api.plural);
    scope.spawn(TaskKind::Helper, name, async move {
        let api: Api<Live> = Api::all_with(watch.client.clone(), &watch.kind.api);
        let stop = watch.stop.clone();
        let watching = list_and_watch(api, watcher::Config::default(), &*watch);
        stop.run_until_cancelled(watching).await;
        Ok::<_, Fault>(())
    });
}

impl WatchSink<Live> for Watch {
    fn list_begins(&self) {
        self.objects.lock().list_begins();
    }

    fn listed(&self, object: Live) {
        let works = self.objects.lock().listed(object);
        self.enqueue(works);
    }

    fn list_ends(&self) {
        let works = self.objects.lock().list_ends();
        self.sight.send_replace(Sight::Clear);
        self.enqueue(works);
    }

    fn applied(&self, object: Live) {
        let works = self.objects.lock().applied(object);
        self.enqueue(works);
    }

    fn deleted(&self, last: Live) {
        let works = self.objects.lock().deleted(&last);
        self.enqueue(works);
    }

    /// While listing is forbidden, objects are read one by one.
    fn failed(&self, error: &watcher::Error) {
        let resource = &self.kind.api.plural;
        if let watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause) = error
            && matches!(code(cause), 401 | 403 | 404 | 405)
        {
            if self.sight.send_replace(Sight::Blind) != Sight::Blind {
                tracing::warn!(resource, error = %chain(error), "resource cannot be watched; polling its objects");
                let works = self.objects.lock().works();
                self.enqueue(works);
            }
        } else {
            tracing::debug!(resource, error = %chain(error), "watch ended; restarting");
        }
    }
}
