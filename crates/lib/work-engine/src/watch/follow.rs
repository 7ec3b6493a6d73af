//! The task behind a watch.

use std::sync::Arc;

use aro_base::chain;
use aro_kube::informer::Patience;
use aro_runtime::{Fault, Scope, TaskKind};
use futures::StreamExt as _;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};

use super::{Sight, Watch};
use crate::failure::code;
use crate::live::Live;

/// Follows a resource until nobody wants anything of it.
pub(super) fn start(watch: &Arc<Watch>, scope: &Scope) {
    let watch = watch.clone();
    let name = format!("watch-{}", watch.kind.api.plural);
    scope.spawn(TaskKind::Helper, name, async move {
        let stop = watch.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = follow(&watch) => {}
        }
        Ok::<_, Fault>(())
    });
}

async fn follow(watch: &Watch) {
    let api: Api<Live> = Api::all_with(watch.client.clone(), &watch.kind.api);
    let events = watcher(api, watcher::Config::default()).backoff(Patience::default());
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let works = match event {
            Ok(Event::Init) => {
                watch.objects.lock().list_begins();
                Vec::new()
            }
            Ok(Event::InitApply(live)) => watch.objects.lock().list_names(live),
            Ok(Event::InitDone) => {
                let works = watch.objects.lock().list_ends();
                watch.sight.send_replace(Sight::Clear);
                works
            }
            Ok(Event::Apply(live)) => watch.objects.lock().seen(live),
            Ok(Event::Delete(live)) => watch.objects.lock().gone(&live),
            Err(error) => {
                failed(watch, &error);
                Vec::new()
            }
        };
        watch.tell(works);
    }
}

/// The watcher starts again by itself. If it may not list, objects are read until it may.
fn failed(watch: &Watch, error: &watcher::Error) {
    if let watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause) = error
        && matches!(code(cause), 401 | 403 | 404 | 405)
    {
        let before = watch.sight.send_replace(Sight::Blind);
        if before != Sight::Blind {
            let resource = &watch.kind.api.plural;
            tracing::warn!(resource, error = %chain(error), "objects cannot be watched; they are read from time to time");
            let wanted = watch.objects.lock().everybody();
            watch.tell(wanted);
        }
    } else {
        tracing::debug!(resource = watch.kind.api.plural, error = %chain(error), "a watch ended and starts again");
    }
}
