use std::collections::{BTreeMap, BTreeSet};

use aro_base::{Clock as _, ManualClock, SignedDuration};
use aro_bundle::{Action, EventType, grpc};
use futures::{Stream, StreamExt as _};
use serde_json::json;
use tempfile::TempDir;
use tonic::{Code, Status};

use super::*;
use crate::rows::Outcome;

const SOURCE: &str = "source";
/// Bundles that are more than may wait for one subscriber, though they are few.
const COUNT: usize = 90;
const LARGE: usize = 50 * 1024;
const FEW: Bounds = Bounds { bundles: 20_000, bytes: 2 * 1024 * 1024 };
const DEADLINE: Duration = Duration::from_mins(1);

struct Site {
    streams: Arc<Streams>,
    clock: Arc<ManualClock>,
    scope: Scope,
    _directory: TempDir,
}

impl Site {
    async fn new() -> Self {
        let (directory, scope) = (tempfile::tempdir().unwrap(), Scope::root("test"));
        let (dispatcher, clock) = Dispatcher::alone(directory.path());
        dispatcher.rows.create_consumer(Some("c1"), BTreeMap::new()).await.unwrap();
        let streams = Streams::bounded(dispatcher, "replica".to_owned(), FEW, &scope);
        Self { streams, clock, scope, _directory: directory }
    }

    /// A bundle that something is known about.
    async fn report(&self, id: &str, size: usize) {
        let mut event = Event::new(id, SOURCE, EventType::spec(Action::Create), "c1");
        event.resource_id = Some(id.to_owned());
        event.resource_version = Some(0);
        event.metadata = Some("{}".to_owned());
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "n", "namespace": "n"}, "data": {"filling": "x".repeat(size)}});
        let event = event.with_payload(&json!({"manifests": [manifest]})).unwrap();
        self.streams.dispatcher.rows.create(&event).await.unwrap();
        let outcome = self.streams.dispatcher.rows.record_status(&status(id)).await.unwrap();
        assert_eq!(outcome, Outcome::Stored);
    }

    async fn stream(&self) -> impl Stream<Item = Result<grpc::CloudEvent, Status>> + use<> {
        let subscription = self.streams.subscribe(SOURCE).await.unwrap();
        subscription.into_stream(Duration::from_hours(1), Box::pin(std::future::pending()))
    }

    /// Returns when everything that is stored has been seen, and with it told.
    async fn seen(&self, count: usize) {
        let seen = async {
            let mut at = self.streams.at.subscribe();
            while self.streams.told.lock().len() < count {
                at.changed().await.unwrap();
            }
        };
        tokio::time::timeout(DEADLINE, seen).await.unwrap();
    }

    /// Returns when the place of the source was written down again now.
    async fn place_is_fresh(&self) {
        let fresh = async {
            loop {
                if self.streams.written(SOURCE).expect("it is kept") == self.clock.now() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(DEADLINE, fresh).await.unwrap();
    }

    async fn end(self) {
        drop(self.streams);
        self.scope.close(Duration::from_secs(5)).await.unwrap();
    }
}

fn status(id: &str) -> Event {
    let mut event = Event::new(format!("status-{id}"), "agent", EventType::status(Action::Update), "c1");
    event.original_source = Some("maestro".to_owned());
    event.resource_id = Some(id.to_owned());
    event.resource_version = Some(1);
    event.sequence_id = Some("10".to_owned());
    event.with_payload(&json!({"conditions": []})).unwrap()
}

/// What a subscriber is told of so many bundles.
async fn hear(
    stream: &mut (impl Stream<Item = Result<grpc::CloudEvent, Status>> + Unpin),
) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    while ids.len() < COUNT {
        let item = tokio::time::timeout(DEADLINE, stream.next()).await.unwrap();
        ids.extend(grpc::read(item.unwrap().unwrap()).unwrap().resource_id);
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_is_let_go_before_it_fills_the_memory_and_is_brought_everything_when_it_does() {
    let site = Site::new().await;
    let mut asleep = std::pin::pin!(site.stream().await);
    for number in 0..COUNT {
        site.report(&number.to_string(), LARGE).await;
    }
    site.seen(COUNT).await;
    let word = asleep.next().await.unwrap().unwrap_err();
    assert_eq!(word.code(), Code::ResourceExhausted);
    assert!(asleep.next().await.is_none());
    assert_eq!(site.streams.dispatcher.observer.slow_subscribers.get(), 1);

    // Far more than may wait, and it comes: it is read as it is sent.
    let all: BTreeSet<String> = (0..COUNT).map(|number| number.to_string()).collect();
    let mut awake = std::pin::pin!(site.stream().await);
    assert_eq!(hear(&mut awake).await, all);
    // The same for what a source asks for.
    site.streams.ask(SOURCE, Vec::new()).await.unwrap();
    assert_eq!(hear(&mut awake).await, all);
    assert_eq!(site.streams.dispatcher.observer.slow_subscribers.get(), 1, "nobody was let go again");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_is_told_without_a_pause_gets_its_heartbeats() {
    let site = Site::new().await;
    let subscription = site.streams.subscribe(SOURCE).await.unwrap();
    let subscriber = subscription.0.clone();
    let stream = subscription.into_stream(Duration::from_millis(20), Box::pin(std::future::pending()));
    let mut stream = std::pin::pin!(stream);
    let beat = async {
        loop {
            // There is always something to tell.
            subscriber.tell("b", Arc::new(status("b")));
            let item = stream.next().await.unwrap().unwrap();
            if item.r#type.ends_with("heartbeat") {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, beat).await.unwrap();
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_before_and_is_told_after_something_newer_is_left_out() {
    let site = Site::new().await;
    let subscription = site.streams.subscribe(SOURCE).await.unwrap();
    let subscriber = subscription.0.clone();
    assert!(site.streams.is_news("b", Some("11")));
    let event = |id: &str| Some(Event { id: id.to_owned(), ..status("b") });
    site.streams.retell(&subscriber, "b", Some("10"), event("old"));
    site.streams.retell(&subscriber, "b", Some("11"), event("new"));
    site.streams.retell(&subscriber, "b", Some("10"), event("old"));
    let mut stream =
        std::pin::pin!(subscription.into_stream(Duration::from_hours(1), Box::pin(std::future::pending())));
    assert_eq!(stream.next().await.unwrap().unwrap().id, "new");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_source_takes_no_more_places_than_it_may() {
    let site = Site::new().await;
    let mut all = Vec::new();
    for _ in 0..MOST_OF_ONE {
        all.push(site.streams.subscribe(SOURCE).await.unwrap());
    }
    assert!(matches!(site.streams.subscribe(SOURCE).await, Err(NotSubscribed::TooMany)));
    assert!(site.streams.subscribe("another").await.is_ok());
    all.pop();
    assert!(site.streams.subscribe(SOURCE).await.is_ok());
    drop(all);
    assert_eq!(site.streams.dispatcher.observer.subscribers.get(), 0);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_reads_keeps_its_place_for_as_long_as_it_sleeps() {
    let site = Site::new().await;
    let asleep = site.stream().await;
    for number in 0..COUNT {
        site.report(&number.to_string(), 1).await;
    }
    site.seen(COUNT).await;
    // Longer than places are kept that nobody writes again.
    for _ in 0..3 {
        site.clock.advance(SignedDuration::from_mins(40));
        site.place_is_fresh().await;
    }
    drop(asleep);
    let mut awake = std::pin::pin!(site.stream().await);
    assert_eq!(hear(&mut awake).await.len(), COUNT);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_that_begins_further_back_takes_the_place_back_with_it() {
    let site = Site::new().await;
    let other = Streams::bounded(site.streams.dispatcher.clone(), "other".to_owned(), FEW, &site.scope);
    let stream = site.stream().await;
    site.scope.spawn(TaskKind::Helper, "reader", async move {
        let mut stream = std::pin::pin!(stream);
        while stream.next().await.is_some() {}
        Ok::<_, Fault>(())
    });
    // The other replica's subscriber does not read, and leaves.
    let asleep = other.subscribe(SOURCE).await.unwrap();
    site.clock.advance(SignedDuration::from_secs(1));
    for number in 0..COUNT {
        site.report(&number.to_string(), 1).await;
    }
    let places = async || {
        let mut places = site.streams.all_written(SOURCE).await;
        places.sort_by_key(|place| place.reached);
        let [oldest, newest] = places.try_into().unwrap();
        (oldest, newest)
    };
    let moved_on = async {
        loop {
            let (oldest, newest) = places().await;
            if oldest != newest {
                return oldest;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let oldest = tokio::time::timeout(DEADLINE, moved_on).await.unwrap();
    drop(asleep);

    let newcomer = site.stream().await;
    assert_eq!(places().await, (oldest.clone(), oldest.clone()), "it has not been told anything since");
    site.clock.advance(SignedDuration::from_secs(40));
    site.place_is_fresh().await;
    assert_eq!(places().await, (oldest.clone(), oldest), "whatever the others have read");
    let mut newcomer = std::pin::pin!(newcomer);
    assert_eq!(hear(&mut newcomer).await.len(), COUNT);
    drop(other);
    site.end().await;
}
