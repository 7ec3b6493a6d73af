use std::collections::{BTreeMap, BTreeSet};

use aro_base::{Clock as _, ManualClock, SignedDuration};
use aro_bundle::{Action, EventType, grpc};
use futures::{Stream, StreamExt as _};
use serde_json::json;
use tempfile::TempDir;
use tonic::{Code, Status};

use super::*;
use crate::rows::Outcome;
use crate::testing;

const SOURCE: &str = "source";
/// Bundles whose statuses exceed the byte limit of one subscriber.
const COUNT: usize = 90;
const LARGE: usize = 50 * 1024;
const SMALL: Limits = Limits { bundles: 20_000, bytes: 2 * 1024 * 1024 };
const DEADLINE: Duration = Duration::from_mins(1);

fn streams(rows: Rows, replica: &str, scope: &Scope) -> Arc<Streams> {
    let metrics = ServerMetrics::new(&aro_runtime::Metrics::default());
    Streams::with_limits(rows, Arc::default(), metrics, replica.to_owned(), SMALL, scope)
}

struct Site {
    streams: Arc<Streams>,
    clock: Arc<ManualClock>,
    scope: Scope,
    _directory: TempDir,
}

impl Site {
    async fn new() -> Self {
        let (directory, scope) = (tempfile::tempdir().unwrap(), Scope::root("test"));
        let (rows, clock) = testing::rows(directory.path());
        rows.create_consumer(Some("c1"), BTreeMap::new()).await.unwrap();
        let streams = streams(rows, "replica", &scope);
        Self { streams, clock, scope, _directory: directory }
    }

    /// Stores a bundle and its status.
    async fn report(&self, id: &str, size: usize) {
        let mut event = Event::new(id, SOURCE, EventType::spec(Action::Create), "c1");
        event.resource_id = Some(id.to_owned());
        event.resource_version = Some(0);
        event.metadata = Some("{}".to_owned());
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "n", "namespace": "n"}, "data": {"filling": "x".repeat(size)}});
        let event = event.with_payload(&json!({"manifests": [manifest]})).unwrap();
        self.streams.rows.create(&event).await.unwrap();
        let outcome = self.streams.rows.record_status(&status(id)).await.unwrap();
        assert_eq!(outcome, Outcome::Stored);
    }

    async fn stream(&self) -> impl Stream<Item = Result<grpc::CloudEvent, Status>> + use<> {
        let subscription = self.streams.subscribe(SOURCE).await.unwrap();
        subscription.into_stream(Duration::from_hours(1), Box::pin(std::future::pending()))
    }

    /// Returns when the feed has delivered this many bundles.
    async fn wait_for_delivery(&self, count: usize) {
        let delivered = async {
            let mut head = self.streams.head.subscribe();
            while self.streams.delivered.lock().len() < count {
                head.changed().await.unwrap();
            }
        };
        tokio::time::timeout(DEADLINE, delivered).await.unwrap();
    }

    /// Returns when the source's position was stored at the current time.
    async fn wait_for_fresh_position(&self) {
        let fresh = async {
            loop {
                if self.streams.stored_at(SOURCE).expect("a stored position") == self.clock.now() {
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

/// The ids of all bundles whose status a stream delivers.
async fn receive_all(
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
async fn subscriber_that_does_not_read_is_disconnected_and_replays_everything_when_it_returns() {
    let site = Site::new().await;
    let mut asleep = std::pin::pin!(site.stream().await);
    for number in 0..COUNT {
        site.report(&number.to_string(), LARGE).await;
    }
    site.wait_for_delivery(COUNT).await;
    let status = asleep.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(asleep.next().await.is_none());
    assert_eq!(site.streams.metrics.slow_subscribers.get(), 1);

    // More than the limits allow to wait: a replay is read page by page.
    let all: BTreeSet<String> = (0..COUNT).map(|number| number.to_string()).collect();
    let mut awake = std::pin::pin!(site.stream().await);
    assert_eq!(receive_all(&mut awake).await, all);
    // The same for a resync.
    site.streams.request_resync(SOURCE, Vec::new()).await.unwrap();
    assert_eq!(receive_all(&mut awake).await, all);
    assert_eq!(site.streams.metrics.slow_subscribers.get(), 1, "no subscriber was disconnected again");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriber_under_load_gets_heartbeats() {
    let site = Site::new().await;
    let subscription = site.streams.subscribe(SOURCE).await.unwrap();
    let subscriber = subscription.0.clone();
    let stream = subscription.into_stream(Duration::from_millis(20), Box::pin(std::future::pending()));
    let mut stream = std::pin::pin!(stream);
    let beat = async {
        loop {
            // There is always an event to send.
            subscriber.enqueue("b", Arc::new(status("b")));
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
async fn replayed_status_older_than_a_delivered_one_is_skipped() {
    let site = Site::new().await;
    let subscription = site.streams.subscribe(SOURCE).await.unwrap();
    let subscriber = subscription.0.clone();
    assert!(site.streams.record_new("b", Some("11")));
    let event = |id: &str| Some(Event { id: id.to_owned(), ..status("b") });
    site.streams.replay_event(&subscriber, "b", Some("10"), event("old"));
    site.streams.replay_event(&subscriber, "b", Some("11"), event("new"));
    site.streams.replay_event(&subscriber, "b", Some("10"), event("old"));
    let mut stream =
        std::pin::pin!(subscription.into_stream(Duration::from_hours(1), Box::pin(std::future::pending())));
    assert_eq!(stream.next().await.unwrap().unwrap().id, "new");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_of_one_source_are_limited() {
    let site = Site::new().await;
    let mut all = Vec::new();
    for _ in 0..MAX_PER_SOURCE {
        all.push(site.streams.subscribe(SOURCE).await.unwrap());
    }
    assert!(matches!(site.streams.subscribe(SOURCE).await, Err(NotSubscribed::TooMany)));
    assert!(site.streams.subscribe("another").await.is_ok());
    all.pop();
    assert!(site.streams.subscribe(SOURCE).await.is_ok());
    drop(all);
    assert_eq!(site.streams.metrics.subscribers.get(), 0);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriber_that_never_reads_keeps_its_position_while_connected() {
    let site = Site::new().await;
    let asleep = site.stream().await;
    for number in 0..COUNT {
        site.report(&number.to_string(), 1).await;
    }
    site.wait_for_delivery(COUNT).await;
    // Longer than an unrefreshed position is kept.
    for _ in 0..3 {
        site.clock.advance(SignedDuration::from_mins(40));
        site.wait_for_fresh_position().await;
    }
    drop(asleep);
    let mut awake = std::pin::pin!(site.stream().await);
    assert_eq!(receive_all(&mut awake).await.len(), COUNT);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_subscriber_that_starts_further_back_resets_the_position() {
    let site = Site::new().await;
    let other = streams(site.streams.rows.clone(), "other", &site.scope);
    let stream = site.stream().await;
    site.scope.spawn(TaskKind::Helper, "reader", async move {
        let mut stream = std::pin::pin!(stream);
        while stream.next().await.is_some() {}
        Ok::<_, Fault>(())
    });
    // The other replica's subscriber does not read, and disconnects.
    let asleep = other.subscribe(SOURCE).await.unwrap();
    site.clock.advance(SignedDuration::from_secs(1));
    for number in 0..COUNT {
        site.report(&number.to_string(), 1).await;
    }
    let positions = async || {
        let mut positions = site.streams.all_stored(SOURCE).await;
        positions.sort_by_key(|position| position.reached);
        let [oldest, newest] = positions.try_into().unwrap();
        (oldest, newest)
    };
    let moved_on = async {
        loop {
            let (oldest, newest) = positions().await;
            if oldest != newest {
                return oldest;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let oldest = tokio::time::timeout(DEADLINE, moved_on).await.unwrap();
    drop(asleep);

    let newcomer = site.stream().await;
    assert_eq!(positions().await, (oldest.clone(), oldest.clone()), "nothing was delivered to it since");
    site.clock.advance(SignedDuration::from_secs(40));
    site.wait_for_fresh_position().await;
    assert_eq!(positions().await, (oldest.clone(), oldest), "independent of other subscribers");
    let mut newcomer = std::pin::pin!(newcomer);
    assert_eq!(receive_all(&mut newcomer).await.len(), COUNT);
    drop(other);
    site.end().await;
}
