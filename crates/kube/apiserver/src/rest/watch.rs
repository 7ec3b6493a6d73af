//! Watching: events in order, each once, from memory.
//!
//! A watcher owns no queue: it remembers the version it has seen and reads on from the watch cache's history when it is woken. One
//! that is too slow for the history gets 410 and lists again.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{FieldError, Status};
use bytes::{Bytes, BytesMut};
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::call::Call;
use super::list::{Selection, invalid_version, prefix};
use super::object;
use crate::http::answer::{self, Answer};
use crate::http::body::Body;
use crate::http::media::Shape;
use crate::storage::{Event, EventKind, Stored};

/// How many events are put into one write.
const BATCH: usize = 256;
/// No watch lasts longer, whatever is asked for: an instant has no room for all numbers.
const LONGEST: Duration = Duration::from_hours(24 * 365);
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

struct Watcher {
    call: Call,
    selection: Selection,
    prefix: String,
    changes: Receiver<u64>,
    /// Everything up to here was sent.
    seen: u64,
    initial: VecDeque<Arc<Stored>>,
    /// The first bookmark after the initial events says that they are over.
    announce_end: bool,
    bookmarks: Option<Instant>,
    deadline: Instant,
    /// These two outlast a wait: a watch waits after every event, and neither has anything to do with that.
    timer: Pin<Box<Sleep>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
    failure: Option<Status>,
    headers_sent: bool,
}

pub(super) fn watch(call: &mut Call) -> Result<Answer, Status> {
    let selection = Selection::of(call)?;
    let stream_initial = call.query.get("sendInitialEvents").map(|_| call.query.flag("sendInitialEvents"));
    check_options(call, stream_initial)?;
    let version = match call.query.get("resourceVersion") {
        // Upstream does not call this the client's fault.
        Some(text) => text.parse().map_err(|_| Status::new(500, "", invalid_version(text)))?,
        None => 0,
    };
    let changes = call.watch_cache.changes();
    let mut initial = VecDeque::new();
    let mut seen = version;
    if stream_initial.unwrap_or(version == 0) {
        // Pointers only: they are selected when they are sent.
        let published = || call.cluster.store.version();
        let listed = call.watch_cache.list(&prefix(call), None, usize::MAX, published, |_| true);
        seen = listed.version;
        initial = listed.objects.into();
    } else if version == 0 {
        seen = call.cluster.store.version();
    }
    // Clients may ask for less time than we would give; upstream spreads its own between one and two half hours.
    let longest = Duration::from_secs(1800 + u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 7);
    let seconds = call.query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds > 0).map_or(longest, Duration::from_secs).min(LONGEST);
    let now = Instant::now();
    let bookmarks = call.query.flag("allowWatchBookmarks").then(|| now + BOOKMARK_EVERY);
    let watcher = Watcher {
        prefix: prefix(call),
        selection,
        changes,
        seen,
        initial,
        announce_end: stream_initial == Some(true) && bookmarks.is_some(),
        bookmarks,
        deadline: now + seconds,
        timer: Box::pin(tokio::time::sleep_until(now + seconds)),
        closing: Box::pin(call.cluster.closing.clone().cancelled_owned()),
        ended: false,
        failure: None,
        headers_sent: false,
        call: call.clone(),
    };
    let stream =
        stream::unfold(
            watcher,
            |mut watcher| async move { watcher.next().await.map(|bytes| (bytes, watcher)) },
        );
    let mut answer = answer::json_bytes(200, Bytes::new());
    *answer.body_mut() = Body::Stream(Box::pin(stream));
    Ok(answer)
}

fn check_options(call: &Call, stream_initial: Option<bool>) -> Result<(), Status> {
    let mut errors = Vec::new();
    let matching = call.query.get("resourceVersionMatch");
    match stream_initial {
        Some(true) if matching != Some("NotOlderThan") => {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden("resourceVersionMatch", detail));
        }
        None if matching.is_some() => {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden("resourceVersionMatch", detail));
        }
        _ => {}
    }
    if let Some(matching) = matching.filter(|matching| *matching != "NotOlderThan") {
        errors.push(FieldError::not_supported("resourceVersionMatch", matching, ["NotOlderThan"]));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let kind =
        aro_kube_apimachinery::GroupKind { group: "meta.k8s.io".to_owned(), kind: "ListOptions".to_owned() };
    Err(Status::invalid(&kind, "", &errors))
}

impl Watcher {
    /// The next bytes to send. `None`: the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.headers_sent {
            // An empty frame makes the server send the head at once; clients wait for it before they act.
            self.headers_sent = true;
            // The initial events of a selection may turn out to be none.
            let none = self.initial.is_empty() || !self.selection.is_empty();
            if none && self.failure.is_none() && !self.announce_end {
                return Some(Bytes::new());
            }
        }
        loop {
            if self.ended {
                return None;
            }
            if let Some(failure) = self.failure.take() {
                self.ended = true;
                return Some(line("ERROR", &failure.to_value()));
            }
            if !self.initial.is_empty() {
                let bytes = self.initial_events();
                if bytes.is_empty() {
                    // A selector over many objects takes a while: other tasks run in between.
                    tokio::task::yield_now().await;
                    continue;
                }
                return Some(bytes);
            }
            if std::mem::take(&mut self.announce_end) {
                return Some(self.bookmark(true));
            }
            match self.call.watch_cache.since(self.seen, BATCH) {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    self.seen = events.last().map_or(self.seen, |event| event.object.version);
                    let bytes = self.render(&events);
                    if bytes.is_empty() {
                        continue;
                    }
                    return Some(bytes);
                }
                Err(old) => {
                    let message = format!("too old resource version: {} ({})", self.seen, old.oldest);
                    self.failure = Some(Status::expired(message));
                    continue;
                }
            }
            let until = self.bookmarks.map_or(self.deadline, |bookmark| bookmark.min(self.deadline));
            if self.timer.deadline() != until {
                self.timer.as_mut().reset(until);
            }
            tokio::select! {
                biased;
                () = &mut self.closing => return None,
                changed = self.changes.changed() => changed.ok()?,
                () = &mut self.timer => {
                    if Instant::now() >= self.deadline {
                        self.ended = true;
                        self.bookmarks?;
                    }
                    self.bookmarks = self.bookmarks.map(|_| Instant::now() + BOOKMARK_EVERY);
                    return Some(self.bookmark(false));
                }
            }
        }
    }

    fn initial_events(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        let count = self.initial.len().min(BATCH);
        for stored in self.initial.drain(..count).collect::<Vec<_>>() {
            if !self.selection.matches(&stored) {
                continue;
            }
            if self.call.plain() {
                put_line(&mut out, "ADDED", stored.json());
            } else {
                out.extend_from_slice(&self.shape("ADDED", &stored));
            }
        }
        out.freeze()
    }

    fn render(&self, events: &[Arc<Event>]) -> Bytes {
        let mut lines: Vec<Bytes> = Vec::with_capacity(events.len());
        for event in events {
            if !event.object.key.starts_with(&self.prefix) {
                continue;
            }
            let Some(kind) = self.seen_as(event) else { continue };
            if self.call.plain() && kind == event.kind {
                lines.push(event.object.line(kind));
            } else if let (EventKind::Deleted, Some(previous), true) =
                (kind, &event.previous, kind != event.kind)
            {
                // What leaves the selection is shown as it was last seen, in the version that took it away.
                let mut last = object::shown(&self.call, previous);
                meta::set(
                    &mut last,
                    &["metadata", "resourceVersion"],
                    json!(event.object.version.to_string()),
                );
                lines.push(self.shape_value(word(kind), last));
            } else {
                lines.push(self.shape(word(kind), &event.object));
            }
        }
        match lines.as_slice() {
            [one] => one.clone(),
            lines => lines.concat().into(),
        }
    }

    /// What an event is for those who only see some objects: entering the selection looks like an addition.
    fn seen_as(&self, event: &Event) -> Option<EventKind> {
        if self.selection.is_empty() {
            return Some(event.kind);
        }
        let before = event.previous.as_ref().is_some_and(|previous| self.selection.matches(previous));
        let after = event.kind != EventKind::Deleted && self.selection.matches(&event.object);
        match (before, after) {
            (false, true) => Some(EventKind::Added),
            (true, true) => Some(EventKind::Modified),
            (true, false) => Some(EventKind::Deleted),
            (false, false) => None,
        }
    }

    fn shape(&self, kind: &str, stored: &Stored) -> Bytes {
        self.shape_value(kind, object::shown(&self.call, stored))
    }

    fn shape_value(&self, kind: &str, object: Value) -> Bytes {
        let shown = match self.call.accepted.shape {
            Shape::Object => object,
            Shape::Metadata => object::metadata_only(&object),
            Shape::Table => {
                let mut table = crate::table::Table::new(&self.call);
                table.add(&object);
                table.finish(&json!({"resourceVersion": meta::resource_version(&object)}))
            }
        };
        line(kind, &shown)
    }

    fn bookmark(&mut self, end_of_initial: bool) -> Bytes {
        // Nothing of this watch cache lies between what was sent and the newest version of the cluster store.
        if self.call.watch_cache.version() <= self.seen {
            self.seen = self.seen.max(self.call.cluster.store.version());
        }
        let gvk = &self.call.served.resource.gvk;
        let mut object = json!({
            "kind": gvk.kind, "apiVersion": gvk.api_version(),
            "metadata": {"resourceVersion": self.seen.to_string()},
        });
        if end_of_initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        if self.call.accepted.shape == Shape::Metadata {
            object = object::metadata_only(&object);
        }
        line("BOOKMARK", &object)
    }
}

fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Added => "ADDED",
        EventKind::Modified => "MODIFIED",
        EventKind::Deleted => "DELETED",
    }
}

fn put_line(out: &mut BytesMut, kind: &str, json: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(json);
    out.extend_from_slice(b"}\n");
}

fn line(kind: &str, object: &Value) -> Bytes {
    let mut out = BytesMut::new();
    put_line(&mut out, kind, &serde_json::to_vec(object).unwrap_or_default());
    out.freeze()
}
