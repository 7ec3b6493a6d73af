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
use super::sweep::Sweep;

/// How many questions of its source may wait for it.
const SWEEPS: usize = 4;

/// Somebody who listens.
pub struct Subscriber {
    streams: Arc<Streams>,
    pub(super) source: String,
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    events: Pending,
    sweeps: VecDeque<Sweep>,
    overrun: bool,
    /// The stream came for more and there was nothing: what it was given before is sent.
    drained: bool,
}

/// What a stream is to do next.
enum Next {
    Send(Arc<Event>),
    Sweep(Sweep),
    Wait,
    Overrun,
}

impl Subscriber {
    pub(super) fn new(streams: Arc<Streams>, source: String) -> Arc<Self> {
        Arc::new(Self { streams, source, waiting: Mutex::default(), news: Notify::new() })
    }

    /// Tells it something about a bundle.
    pub(super) fn tell(&self, bundle: &str, event: Arc<Event>) {
        let mut waiting = self.waiting.lock();
        if waiting.overrun {
            return;
        }
        waiting.drained = false;
        if !waiting.events.add(bundle, event, self.streams.most) {
            waiting.overrun = true;
            waiting.events.clear();
            self.streams.dispatcher.observer.slow_subscribers.inc();
        }
        drop(waiting);
        self.news.notify_one();
    }

    /// Gives it something to go through. One that is asked faster than it reads is asked less often.
    pub(super) fn bring(&self, sweep: Sweep) {
        let mut waiting = self.waiting.lock();
        if waiting.sweeps.len() < SWEEPS {
            waiting.drained = false;
            waiting.sweeps.push_back(sweep);
            self.news.notify_one();
        }
    }

    /// Whether it has been sent everything.
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
        if let Some(sweep) = waiting.sweeps.pop_front() {
            return Next::Sweep(sweep);
        }
        waiting.drained = true;
        Next::Wait
    }

    /// Gives it something to go through before everything else: what it missed, or the rest of what it is at.
    pub(super) fn bring_first(&self, sweep: Sweep) {
        let mut waiting = self.waiting.lock();
        waiting.drained = false;
        waiting.sweeps.push_front(sweep);
    }
}

/// A subscriber's place among those who are told. It leaves when this is dropped, however that happens: a caller may go
/// while it is still being brought what it missed.
pub struct Subscription(pub(super) Arc<Subscriber>);

impl Subscription {
    /// The events as they come, with heartbeats between them, until it is over for a reason.
    pub fn into_stream(
        self,
        heartbeat: Duration,
        over: BoxFuture<'static, Status>,
    ) -> impl Stream<Item = Result<grpc::CloudEvent, Status>> + Send {
        let due = Instant::now() + heartbeat;
        let told = Telling { subscription: self, heartbeat, due, over, ended: false };
        let events = futures::stream::unfold(told, |mut told| async move {
            let item = told.next().await?;
            told.ended = item.is_err();
            Some((item, told))
        });
        Boxed(Box::pin(events))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.streams.leave(&self.0);
    }
}

/// A stream that is being read.
struct Telling {
    subscription: Subscription,
    heartbeat: Duration,
    due: Instant,
    over: BoxFuture<'static, Status>,
    ended: bool,
}

impl Telling {
    async fn next(&mut self) -> Option<Result<grpc::CloudEvent, Status>> {
        if self.ended {
            return None;
        }
        let subscriber = self.subscription.0.clone();
        loop {
            // Also while there is much to tell: clients go by heartbeats alone.
            if Instant::now() >= self.due {
                self.due = Instant::now() + self.heartbeat;
                return Some(Ok(grpc::heartbeat(Uuid::new_v4().to_string())));
            }
            if let Poll::Ready(why) = futures::poll!(&mut self.over) {
                return Some(Err(why));
            }
            match subscriber.next() {
                Next::Send(event) => {
                    subscriber.streams.dispatcher.observer.told.inc();
                    return Some(Ok(grpc::write(&event)));
                }
                Next::Sweep(sweep) => match subscriber.streams.sweep(&subscriber, sweep).await {
                    Ok(Some(rest)) => subscriber.bring_first(rest),
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(source = subscriber.source, error = %chain(&error), "a source was not brought everything; it is when it subscribes again");
                        return Some(Err(Status::unavailable(
                            "what was missed cannot be read now; subscribe again",
                        )));
                    }
                },
                Next::Overrun => {
                    return Some(Err(Status::resource_exhausted(
                        "too much is waiting for this subscription; subscribe again, what was missed will follow",
                    )));
                }
                Next::Wait => tokio::select! {
                    biased;
                    why = &mut self.over => return Some(Err(why)),
                    () = subscriber.news.notified() => {}
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
