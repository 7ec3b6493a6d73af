//! After a connection was lost, both sides tell what they know, and are sent what they do not.
//!
//! Agents ask for specs ([`answer`]); the server asks agents for statuses ([`ask_all`]), after its own connect and after
//! each of theirs. Both work on pages of rows, send side by side, and fit every message into a packet. Agents are answered
//! in turns ([`turns`]), so that none keeps the others waiting.

mod turns;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_bundle::{
    Action, Event, EventError, EventType, IdRange, KnownStatus, MAX_PACKET, SpecResync, status_pages,
};
use aro_mqtt::{Ack, PublishError};
use aro_runtime::{Fault, Scope, TaskKind};
use aro_store::{Page, PageToken};
use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use crate::dispatch::Dispatcher;
use crate::fault::Code;
use crate::hear::NOT_BELIEVED;
use crate::rows::{Bundle, Row};
use crate::speech;

use turns::Turns;

/// Rows read at once.
const PAGE: usize = 200;
/// Events on their way at once, per agent.
const AT_ONCE: usize = 64;
/// Agents answered at once.
const AGENTS: usize = 8;
/// How often an answer is tried, and the pauses in between.
const TRIES: usize = 20;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Room for the envelope of a resync.
const ENVELOPE: usize = 4 * 1024;
/// The digest of a status that nobody has told yet: of nothing.
const NO_STATUS: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Answers agents until the scope is closed.
pub fn start(dispatcher: Arc<Dispatcher>, mut asked: mpsc::Receiver<(Event, Ack)>, scope: &Scope) {
    let inside = scope.clone();
    // One word per answer that is under way: there is always room.
    let (over, mut answered) = mpsc::channel(AGENTS);
    scope.spawn(TaskKind::Worker, "resyncs", async move {
        let mut turns: Turns<(Event, Ack)> = Turns::default();
        let mut free = AGENTS;
        loop {
            while free > 0
                && let Some((consumer, (event, ack))) = turns.next()
            {
                free -= 1;
                let turn = Turn { consumer, over: over.clone() };
                let dispatcher = dispatcher.clone();
                inside.spawn(TaskKind::Helper, "resync", async move {
                    let _turn = turn;
                    attend(&dispatcher, &event).await;
                    ack.done();
                    Ok::<_, Fault>(())
                });
            }
            tokio::select! {
                biased;
                () = inside.cancelled() => return Ok(()),
                Some(consumer) = answered.recv() => {
                    free += 1;
                    turns.done(&consumer);
                }
                question = asked.recv() => {
                    let Some((event, ack)) = question else { return Ok::<_, Fault>(()) };
                    let (consumer, range, asked) = (event.cluster_name.clone(), IdRange::of(&event), event.id.clone());
                    if let Some((event, unanswered)) = turns.add(&consumer, range, (event, ack)) {
                        // A newer question takes the place of an older one; this one has no place at all.
                        if event.id == asked {
                            dispatcher.observer.refused("too_many_questions");
                            tracing::error!(consumer, "too many agents ask at once; this one is answered when it connects again");
                        }
                        unanswered.done();
                    }
                }
            }
        }
    });
}

/// A consumer's turn. It is over when this is dropped, however that happens.
struct Turn {
    consumer: String,
    over: mpsc::Sender<String>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = self.over.try_send(std::mem::take(&mut self.consumer));
    }
}

/// Answers a question, for as long as it takes: what is to be taken away is said nowhere else.
async fn attend(dispatcher: &Dispatcher, event: &Event) {
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    if matches!(dispatcher.rows.consumer_by_name(&event.cluster_name).await, Ok(None)) {
        tracing::warn!(
            consumer = event.cluster_name,
            "an agent asks as a consumer that is not there: is its name right, or does the consumer have to be made?"
        );
    }
    for _ in 0..TRIES {
        match answer(dispatcher, event).await {
            Ok(sent) => {
                tracing::info!(consumer = event.cluster_name, sent, "an agent was sent what it did not know");
                dispatcher.observer.spec_resync.observe(began.elapsed().as_secs_f64());
                return ask_back(dispatcher, event).await;
            }
            Err(Unanswered::Malformed(error)) => {
                tracing::warn!(consumer = event.cluster_name, %error, "an agent's question cannot be read");
                return;
            }
            Err(Unanswered::Failed(error)) => {
                tracing::warn!(consumer = event.cluster_name, error = %chain(&error), "an agent was not answered to the end; trying again");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    tracing::error!(consumer = event.cluster_name, "an agent was not answered; it is when it connects again");
}

/// Why a question has no answer.
#[derive(Debug)]
enum Unanswered {
    Malformed(EventError),
    Failed(Fault),
}

impl From<Fault> for Unanswered {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

/// What one row means to an agent that has some version of it, or none (0).
fn wanted(row: &Bundle, has: i64) -> bool {
    row.is_deleting() || i64::from(row.version) > has
}

/// Whether an agent has a newer version than there is: of a bundle that was made anew while the agent was away, after its
/// cluster had been given up, or that a restored backup has forgotten. It would take everything for old, for ever.
fn is_ahead(row: &Bundle, has: i64) -> bool {
    !row.is_deleting() && has > i64::from(row.version)
}

/// Gives a bundle a version that is newer than what its agent has. `None` if somebody else changes it right now: that is
/// published by itself, and its agent asks again.
async fn raised(dispatcher: &Dispatcher, row: &Bundle, has: i64) -> Result<Option<Bundle>, Fault> {
    let raised = dispatcher.rows.raise(&row.id, has).await;
    let raised = raised.map_err(|error| Fault::caused("raise the version of a bundle", error))?;
    if let Some(row) = &raised {
        tracing::warn!(
            bundle = row.id,
            consumer = row.consumer_name,
            has,
            version = row.version,
            "an agent had a newer version than there was; the bundle counts on from there"
        );
    }
    Ok(raised)
}

/// Sends an agent what it does not know, and the deletion of what it should not have.
async fn answer(dispatcher: &Dispatcher, event: &Event) -> Result<usize, Unanswered> {
    let question: SpecResync = event.payload().map_err(Unanswered::Malformed)?;
    let range = IdRange::of(event);
    let consumer = &event.cluster_name;
    let mut has: HashMap<String, i64> =
        question.resource_versions.into_iter().map(|one| (one.id, one.version)).collect();
    let mut sent = 0;
    let mut after = None;
    loop {
        let (rows, next) = rows_of(dispatcher, consumer, after).await?;
        let mut events = Vec::new();
        for row in rows.into_iter().map(|row| row.value).filter(|row| range.contains(&row.id)) {
            let version = has.remove(&row.id).unwrap_or_default();
            let row =
                if is_ahead(&row, version) { raised(dispatcher, &row, version).await? } else { Some(row) };
            if let Some(row) = row.filter(|row| wanted(row, version)) {
                let fresh = Uuid::new_v4().to_string();
                let event = speech::to_agent(&row, &dispatcher.server, true, dispatcher.clock.now(), &fresh);
                match event {
                    Ok(event) => events.push(event),
                    // One that cannot be read must not keep the others back.
                    Err(error) => tracing::error!(bundle = row.id, %error, "a stored bundle cannot be read"),
                }
            }
        }
        sent += say_all(dispatcher, consumer, events).await?;
        after = next;
        if after.is_none() {
            break;
        }
    }
    has.retain(|id, _| range.contains(id));
    if has.is_empty() && range == IdRange::default() {
        // Should it fail, the next list leads to the same.
        if let Err(error) = dispatcher.rows.settle(consumer).await {
            tracing::debug!(consumer, error = %chain(&error), "a dispute was not settled");
        }
    }
    Ok(sent + send_away(dispatcher, consumer, has).await?)
}

/// What no row wants is taken away. Reading and sending took a while: what came meanwhile is left alone, and so is what is
/// another consumer's, whose agent may work on the same cluster. Nothing goes on the word of a store that is not believed.
async fn send_away(
    dispatcher: &Dispatcher,
    consumer: &str,
    unwanted: HashMap<String, i64>,
) -> Result<usize, Fault> {
    if unwanted.is_empty() {
        return Ok(0);
    }
    let may_remove = dispatcher.rows.may_remove_from(consumer).await;
    if !may_remove.map_err(|error| Fault::caused("read a consumer", error))? {
        tracing::warn!(consumer, unwanted = unwanted.len(), "{NOT_BELIEVED}");
        return Ok(0);
    }
    let mut ghosts = Vec::new();
    for (id, version) in unwanted {
        match dispatcher.rows.find_bundle(&id).await {
            Ok(None) => {}
            Ok(Some(_)) => continue,
            // Somebody wants it, whatever it says.
            Err(error) if error.code == Code::Unreadable => continue,
            Err(error) => return Err(Fault::caused("read a bundle", error)),
        }
        let version = i32::try_from(version).unwrap_or(i32::MAX);
        let (now, fresh) = (dispatcher.clock.now(), Uuid::new_v4().to_string());
        ghosts.push(speech::ghost(&id, version, consumer, &dispatcher.server, now, &fresh));
    }
    let removed = say_all(dispatcher, consumer, ghosts).await?;
    if removed > 0 {
        tracing::warn!(
            consumer,
            removed,
            "an agent has what nobody wants, and is to take it away; if that is wrong, look which store this server has"
        );
    }
    Ok(removed)
}

/// An agent that tells what it has was away. What it said before then may have died with a broker that had acknowledged
/// it, and when the server asked after its own connect, the agent was perhaps not there yet: so it is asked now.
async fn ask_back(dispatcher: &Dispatcher, event: &Event) {
    // Of a list in several pages the last one is enough.
    if IdRange::of(event).to.is_some() {
        return;
    }
    if let Err(error) = ask_all(dispatcher, std::slice::from_ref(&event.cluster_name)).await {
        tracing::warn!(consumer = event.cluster_name, error = %chain(&error), "an agent was not asked for its statuses; it is when it connects again");
    }
}

async fn rows_of(
    dispatcher: &Dispatcher,
    consumer: &str,
    after: Option<PageToken>,
) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
    let page = dispatcher.rows.of_consumer(consumer, Page { size: PAGE, after }).await;
    page.map_err(|error| Fault::caused("read a consumer's bundles", error))
}

async fn say_all(dispatcher: &Dispatcher, consumer: &str, events: Vec<Event>) -> Result<usize, Fault> {
    let count = events.len();
    let mut said = futures::stream::iter(events)
        .map(|event| async move { (dispatcher.say(consumer, &event).await, event.resource_id) })
        .buffer_unordered(AT_ONCE);
    while let Some((said, id)) = said.next().await {
        match said {
            Ok(()) => {}
            // One that cannot be sent must not keep the others back.
            Err(error @ (PublishError::TooLarge(_) | PublishError::Refused(_))) => {
                tracing::error!(bundle = id.as_deref(), consumer, %error, "a bundle cannot be published");
            }
            Err(error) => return Err(Fault::caused("publish", error)),
        }
    }
    Ok(count)
}

/// Asks every agent for statuses that differ from what is stored, by the consumers' names.
pub async fn ask_all(dispatcher: &Dispatcher, consumers: &[String]) -> Result<(), Fault> {
    for consumer in consumers {
        let mut known = Vec::new();
        let mut after = None;
        loop {
            let (rows, next) = rows_of(dispatcher, consumer, after).await?;
            known.extend(rows.iter().map(|row| known_status(&row.value)));
            after = next;
            if after.is_none() {
                break;
            }
        }
        for (range, page) in status_pages(known, MAX_PACKET.min(dispatcher.max_event) - ENVELOPE) {
            let kind = EventType::status(Action::ResyncRequest);
            let mut event =
                Event::new(Uuid::new_v4().to_string(), dispatcher.server.as_str(), kind, consumer);
            event.time = Some(dispatcher.clock.now());
            event.original_source = Some(dispatcher.server.clone());
            range.attach(&mut event);
            let event = event.with_payload(&page).map_err(|error| Fault::caused("write a resync", error))?;
            match dispatcher.say(consumer, &event).await {
                // A broker that refuses one consumer's topic must not keep the others from being asked.
                Err(error @ (PublishError::TooLarge(_) | PublishError::Refused(_))) => {
                    tracing::error!(consumer, %error, "an agent cannot be asked for statuses");
                }
                said => said.map_err(|error| Fault::caused("publish", error))?,
            }
        }
    }
    Ok(())
}

/// What the server knows of a row's status. A version nobody has told of counts as no status at all.
fn known_status(row: &Bundle) -> KnownStatus {
    let told = row.status_event().ok().flatten().and_then(|status| status.status_hash);
    let told = told.filter(|_| row.delivery.observed_version == row.version);
    KnownStatus { id: row.id.clone(), hash: told.unwrap_or_else(|| NO_STATUS.to_owned()) }
}
