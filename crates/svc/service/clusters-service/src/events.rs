//! The event feed: every change of an object, in commit order, at least once.
//!
//! It is a view of the store's change feed, so nothing is written for it. One task follows the store and keeps the latest
//! stretches of the feed, rendered once; requests are answered from there and wait there. Only a client that is behind all of
//! that reads the store, from its own cursor.
//!
//! A cursor is one of the store's. The store names no position inside of a stretch, so every event but the last of a stretch
//! carries the cursor before it: a client that continues from there receives some events again and misses none.

mod render;
mod ring;

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_net::Backoff;
use aro_ocm::event::MAX_WAIT_SECONDS;
use aro_ocm::names::Environment;
use aro_ocm::{Code, Problem};
use aro_runtime::{Fault, Scope, TaskKind};
use aro_store::{ChangePage, Cursor, Follower, SharedStore, StoreError};
use aro_web::RequestHead;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use crate::api::{Failure, Reply};
use crate::records::{CONTAINER, Records};
use render::Renderer;
use ring::{After, Ring, Stretch};

/// Changes in one stretch.
const STRETCH: usize = 50;
/// Events of an answer, about: whole stretches are answered.
const DEFAULT_SIZE: usize = 500;
const MAX_SIZE: usize = 5000;
/// Requests that read the store at once.
const READERS: usize = 8;
/// Delays while the store is not available.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// Follows the store for all clients of the feed.
pub struct EventHub {
    store: SharedStore,
    renderer: Renderer,
    ring: Mutex<Ring>,
    /// Changes with every stretch.
    changed: watch::Sender<u64>,
    readers: Semaphore,
}

impl EventHub {
    /// A hub that follows nothing yet.
    pub fn new(records: &Records, environment: Environment) -> Arc<Self> {
        Arc::new(Self {
            store: records.store().clone(),
            renderer: Renderer::new(records.clone(), environment),
            ring: Mutex::new(Ring::default()),
            changed: watch::Sender::new(0),
            readers: Semaphore::new(READERS),
        })
    }

    /// Follows the store in a task of the scope.
    pub fn start(self: &Arc<Self>, scope: &Scope) {
        let hub = self.clone();
        scope.spawn(TaskKind::Helper, "event-hub", async move {
            hub.follow_always().await;
            Ok::<_, Fault>(())
        });
    }

    async fn follow_always(&self) {
        let mut attempts = BACKOFF.attempts();
        loop {
            let error = self.follow(&mut attempts).await;
            if !matches!(error, StoreError::CursorExpired) {
                tracing::warn!(error = %chain(&error), "change feed not read");
                attempts.wait().await;
            }
        }
    }

    /// Follows from the present end, until an error.
    async fn follow(&self, attempts: &mut aro_net::Attempts) -> StoreError {
        let start = match self.store.latest_cursor(CONTAINER).await {
            Ok(start) => start,
            Err(error) => return error,
        };
        self.ring.lock().restart(start.clone());
        let mut follower =
            Follower::new(self.store.clone(), CONTAINER, Some(start.clone())).with_limit(STRETCH);
        let mut start = start;
        loop {
            match follower.next().await {
                Ok(page) => {
                    attempts.reset();
                    let stretch = self.stretch(&start, &page);
                    start = page.next;
                    self.ring.lock().push(stretch);
                    self.changed.send_modify(|count| *count += 1);
                }
                Err(error) => return error,
            }
        }
    }

    fn stretch(&self, start: &Cursor, page: &ChangePage) -> Stretch {
        Stretch { end: page.next.clone(), events: self.renderer.events(start, page) }
    }

    /// Answers a request, at the latest when its time is over.
    pub(crate) async fn answer(&self, head: &RequestHead) -> Result<Reply, Failure> {
        let wanted = Wanted::parse(head)?;
        let Some(mut after) = wanted.after else {
            let cursor = self.store.latest_cursor(CONTAINER).await?;
            return Ok(body(&[], &cursor));
        };
        let mut changed = self.changed.subscribe();
        let mut signal = self.store.subscribe(CONTAINER);
        loop {
            changed.borrow_and_update();
            let known = self.ring.lock().after(&after, wanted.size);
            match known {
                After::Events(events, cursor) if !events.is_empty() => return Ok(body(&events, &cursor)),
                After::Events(_, cursor) => {
                    after = cursor;
                    // The sender lives in `self`: this cannot fail while we wait.
                    if timeout_at(wanted.deadline, changed.changed()).await.is_err() {
                        return Ok(body(&[], &after));
                    }
                }
                After::Unknown => {
                    let page = self.read(&after, wanted.size).await?;
                    let events = self.renderer.events(&after, &page);
                    after = page.next;
                    if !events.is_empty() {
                        return Ok(body(&events, &after));
                    }
                    if !page.more && timeout_at(wanted.deadline, signal.changed()).await.is_err() {
                        return Ok(body(&[], &after));
                    }
                }
            }
        }
    }

    /// Reads the store for a client that is behind.
    async fn read(&self, after: &Cursor, size: usize) -> Result<ChangePage, Failure> {
        let _place =
            self.readers.acquire().await.map_err(|error| Failure::caused("the feed stopped", error))?;
        match self.store.changes(CONTAINER, Some(after), size.min(DEFAULT_SIZE)).await {
            Ok(page) => Ok(page),
            Err(StoreError::CursorExpired) => {
                let reason =
                    "the cursor is too old or unknown: list all objects and follow from a new cursor";
                Err(Failure::new(StatusCode::GONE, Code::NotFound, reason))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The parameters of a request.
struct Wanted {
    after: Option<Cursor>,
    size: usize,
    deadline: Instant,
}

impl Wanted {
    fn parse(head: &RequestHead) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let mut number = |name: &str, otherwise: u64, max: u64| match head.parameter(name) {
            None | Some("") => otherwise,
            Some(text) => {
                let parsed = text.parse::<u64>().ok();
                if parsed.is_none() {
                    let reason = format!("'{name}' must be a number");
                    problems.push(Problem::new(Code::InvalidValue, name, reason));
                }
                parsed.map_or(otherwise, |number| number.min(max))
            }
        };
        let timeout = number("timeout", 0, MAX_WAIT_SECONDS);
        let size = number("size", DEFAULT_SIZE as u64, MAX_SIZE as u64).max(1);
        if !problems.is_empty() {
            return Err(Failure::bad_request(problems));
        }
        Ok(Self {
            after: head.parameter("after").filter(|text| !text.is_empty()).map(Cursor::new),
            size: usize::try_from(size).unwrap_or(DEFAULT_SIZE),
            deadline: Instant::now() + Duration::from_secs(timeout),
        })
    }
}

/// An answer, put together from events that are JSON already.
fn body(events: &[Arc<str>], cursor: &Cursor) -> Reply {
    let cursor = serde_json::Value::from(cursor.as_str());
    let text = format!(r#"{{"kind":"EventList","items":[{}],"cursor":{cursor}}}"#, events.join(","));
    Reply::text(text)
}
