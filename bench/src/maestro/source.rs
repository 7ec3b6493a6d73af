//! The source: publishes, and notes when it first hears of each bundle.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use aro_bundle::Event;
use aro_bundle::grpc::{self, CloudEvent};
use aro_maestro_e2e::chain::Source;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::load::Outcome;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// What was heard: of each bundle, when first since it was last asked for.
#[derive(Default)]
struct Heard {
    expected: HashMap<String, Option<Instant>>,
    missing: usize,
    failed: Option<String>,
}

/// A subscription that is read all the time.
pub struct Ear {
    heard: Arc<Mutex<Heard>>,
    news: Arc<Notify>,
    _reader: JoinSet<()>,
}

impl Ear {
    pub async fn of(source: &Source) -> Result<Self> {
        let mut events = source.subscribe().await?;
        let (heard, news) = (Arc::new(Mutex::new(Heard::default())), Arc::new(Notify::new()));
        let (own, own_news) = (heard.clone(), news.clone());
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            loop {
                match events.next().await {
                    Ok(Some(event)) => own.lock().hear(&event),
                    Ok(None) => continue,
                    Err(error) => {
                        own.lock().failed = Some(error.to_string());
                        return own_news.notify_one();
                    }
                }
                own_news.notify_one();
            }
        });
        Ok(Self { heard, news, _reader: reader })
    }

    /// From now on waits for a word about each of these.
    pub fn expect(&self, ids: impl IntoIterator<Item = String>) {
        let mut heard = self.heard.lock();
        heard.expected = ids.into_iter().map(|id| (id, None)).collect();
        heard.missing = heard.expected.len();
    }

    /// When each of them was first heard of, once all were.
    pub async fn all(&self) -> Result<HashMap<String, Instant>> {
        let wait = async {
            loop {
                {
                    let heard = self.heard.lock();
                    if let Some(error) = &heard.failed {
                        bail!("the subscription ended: {error}");
                    }
                    if heard.missing == 0 {
                        let times = heard.expected.iter();
                        return Ok(times.filter_map(|(id, at)| Some((id.clone(), (*at)?))).collect());
                    }
                }
                self.news.notified().await;
            }
        };
        match timeout(PATIENCE, wait).await {
            Ok(all) => all,
            Err(_) => bail!("{} bundles were not heard of after {PATIENCE:?}", self.heard.lock().missing),
        }
    }
}

impl Heard {
    fn hear(&mut self, event: &Event) {
        let Some(id) = event.resource_id.as_deref() else { return };
        if let Some(at @ None) = self.expected.get_mut(id) {
            *at = Some(Instant::now());
            self.missing -= 1;
        }
    }
}

/// An event that is ready to go, and the bundle it is about.
pub struct Ready {
    pub id: String,
    pub event: CloudEvent,
}

impl Ready {
    pub fn new(event: &Event) -> Result<Self> {
        let id = event.resource_id.clone().context("an event about a bundle")?;
        Ok(Self { id, event: grpc::write(event) })
    }
}

/// What came of publishing.
pub struct Published {
    /// How the publishes went.
    pub accepted: Outcome,
    /// From publish to first status.
    pub told: Outcome,
}

/// Publishes events, so many at a time, at a rate if one is given, and waits for the first status of each.
pub async fn publish(
    source: &Source,
    ear: &Ear,
    events: Vec<Ready>,
    connections: usize,
    rate: Option<f64>,
) -> Result<Published> {
    ear.expect(events.iter().map(|one| one.id.clone()));
    let count = events.len();
    let queue = Arc::new(Mutex::new(events.into_iter().enumerate()));
    let begin = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        let (queue, mut client) = (queue.clone(), source.client.clone());
        workers.spawn(async move {
            let mut done = Vec::new();
            loop {
                let next = queue.lock().next();
                let Some((number, Ready { id, event })) = next else { return Ok::<_, anyhow::Error>(done) };
                let sent = match rate {
                    None => Instant::now(),
                    Some(rate) => {
                        let due = begin + Duration::from_secs_f64(number as f64 / rate);
                        sleep_until(due).await;
                        due
                    }
                };
                client.publish_raw(event).await?;
                done.push((id, sent, sent.elapsed()));
            }
        });
    }
    let mut sent = HashMap::with_capacity(count);
    let mut accepted = Vec::with_capacity(count);
    while let Some(worker) = workers.join_next().await {
        for (id, at, took) in worker?? {
            sent.insert(id, at);
            accepted.push(took);
        }
    }
    let accepted = outcome(begin.elapsed(), accepted);
    let heard = ear.all().await?;
    let last = heard.values().max().context("something was published")?;
    let took = last.duration_since(begin);
    let latencies = heard.iter().filter_map(|(id, at)| Some(at.duration_since(*sent.get(id)?))).collect();
    Ok(Published { accepted, told: outcome(took, latencies) })
}

/// Durations as an outcome.
pub fn outcome(took: Duration, latencies: Vec<Duration>) -> Outcome {
    let micros = |one: Duration| u32::try_from(one.as_micros()).unwrap_or(u32::MAX);
    let mut latencies: Vec<u32> = latencies.into_iter().map(micros).collect();
    latencies.sort_unstable();
    Outcome { took, latencies }
}
