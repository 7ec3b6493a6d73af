//! One subscription.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aro_base::chain;
use aro_bundle::{Event, grpc};
use futures::Stream;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use uuid::Uuid;

use super::Streams;
use super::pending::Pending;
use super::replay::Replay;

/// Replays that wait for a subscriber.
const MAX_REPLAYS: usize = 4;

/// A subscriber of a source.
pub struct Subscriber {
    streams: Arc<Streams>,
    pub(super) source: String,
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Default)]
struct Waiting {
    events: Pending,
    replays: VecDeque<Replay>,
    overrun: bool,
    /// The stream has asked for more and there was nothing: everything before is sent.
    drained: bool,
}

/// What a stream does next.
enum Next {
    Send(Arc<Event>),
    Replay(Replay),
    Wait,
    Overrun,
}

impl Subscriber {
    pub(super) fn new(streams: Arc<Streams>, source: String) -> Arc<Self> {
        Arc::new(Self { streams, source, waiting: Mutex::default(), wake: Notify::new() })
    }

    /// Enqueues an event about a bundle.
    pub(super) fn enqueue(&self, bundle: &str, event: Arc<Event>) {
        let mut waiting = self.waiting.lock();
        if waiting.overrun {
            return;
        }
        waiting.drained = false;
        if !waiting.events.add(bundle, event, self.streams.limits) {
            waiting.overrun = true;
            waiting.events.clear();
            self.streams.metrics.slow_subscribers.inc();
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Enqueues a replay. Further ones are dropped while too many wait.
    pub(super) fn replay(&self, replay: Replay) {
        let mut waiting = self.waiting.lock();
        if waiting.replays.len() < MAX_REPLAYS {
            waiting.drained = false;
            waiting.replays.push_back(replay);
            self.wake.notify_one();
        }
    }

    /// Whether everything was sent.
    pub(super) fn is_drained(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.drained && !waiting.overrun
    }

    fn next(&self) -> Next {
        let mut waiting = self.waiting.lock();
        if waiting.overrun {
            return Next::Overrun;
        }
        if let Some(event) = waiting.events.take() {
            return Next::Send(event);
        }
        if let Some(replay) = waiting.replays.pop_front() {
            return Next::Replay(replay);
        }
        waiting.drained = true;
        Next::Wait
    }

    /// Enqueues a replay before all others: what was missed, or the rest of the current one.
    pub(super) fn replay_first(&self, replay: Replay) {
        let mut waiting = self.waiting.lock();
        waiting.drained = false;
        waiting.replays.push_front(replay);
    }
}

/// A registered subscriber. Dropping it unregisters the subscriber, however the call ended: a caller may disconnect during
/// the replay.
pub struct Subscription(pub(super) Arc<Subscriber>);

impl Subscription {
    /// The events with heartbeats between them, until the subscription ends with a status.
    pub fn into_stream(
        self,
        heartbeat: Duration,
        over: BoxFuture<'static, Status>,
    ) -> impl Stream<Item = Result<grpc::CloudEvent, Status>> + Send {
        let due = Instant::now() + heartbeat;
        let state = StreamState { subscription: self, heartbeat, due, over, ended: false };
        let events = futures::stream::unfold(state, |mut state| async move {
            let item = state.next().await?;
            state.ended = item.is_err();
            Some((item, state))
        });
        Boxed(Box::pin(events))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.streams.unregister(&self.0);
    }
}

/// The state of a stream that is being read.
struct StreamState {
    subscription: Subscription,
    heartbeat: Duration,
    due: Instant,
    over: BoxFuture<'static, Status>,
    ended: bool,
}

impl StreamState {
    async fn next(&mut self) -> Option<Result<grpc::CloudEvent, Status>> {
        if self.ended {
            return None;
        }
        let subscriber = self.subscription.0.clone();
        loop {
            // Also under load: clients detect a dead connection by missing heartbeats.
            if Instant::now() >= self.due {
                self.due = Instant::now() + self.heartbeat;
                return Some(Ok(grpc::heartbeat(Uuid::new_v4().to_string())));
            }
            if let Poll::Ready(status) = futures::poll!(&mut self.over) {
                return Some(Err(status));
            }
            match subscriber.next() {
                Next::Send(event) => {
                    subscriber.streams.metrics.source_events.inc();
                    return Some(Ok(grpc::write(&event)));
                }
                Next::Replay(replay) => match subscriber.streams.replay(&subscriber, replay).await {
                    Ok(Some(rest)) => subscriber.replay_first(rest),
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(source = subscriber.source, error = %chain(&error), "replay failed; the source has to subscribe again");
                        return Some(Err(Status::unavailable(
                            "missed statuses cannot be read now; subscribe again",
                        )));
                    }
                },
                Next::Overrun => {
                    return Some(Err(Status::resource_exhausted(
                        "subscriber too slow; subscribe again to get the missed statuses",
                    )));
                }
                Next::Wait => tokio::select! {
                    biased;
                    status = &mut self.over => return Some(Err(status)),
                    () = subscriber.wake.notified() => {}
                    () = sleep_until(self.due) => {}
                },
            }
        }
    }
}

struct Boxed<S>(Pin<Box<S>>);

impl<S: Stream> Stream for Boxed<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}
