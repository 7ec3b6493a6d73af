//! Says what is to be said, and writes down what is to be remembered.

use std::time::Duration;

use aro_bundle::{Event, MAX_PACKET, spec_pages};
use aro_mqtt::{Link, PublishError, Subscribers};
use aro_runtime::Scope;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::agent::SharedAgent;
use crate::book::Say;
use crate::ledger::{self, Ledger};
use crate::speech::Speaker;

/// The pause before something is said again that a connected broker did not take.
const PAUSE: Duration = Duration::from_secs(2);

/// The pause before something is said again that nobody heard: the server comes back any moment.
const UNHEARD: Duration = Duration::from_millis(300);

/// Why something was not said.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// It would have been lost: without sessions nobody keeps it for a server that is away.
    #[error("no server is connected to the broker")]
    Unheard,
}

async fn tell(link: &Link, topic: &str, event: &Event) -> Result<(), Failed> {
    match link.publish_matching(topic, aro_bundle::mqtt::write(event)).await? {
        Subscribers::Matched => Ok(()),
        Subscribers::None => Err(Failed::Unheard),
    }
}

/// What one page of a resync may take: the packet without its envelope.
const PAGE: usize = MAX_PACKET - 16 * 1024;

/// Says what is to be said until the scope closes.
pub async fn run(agent: SharedAgent, link: Link, speaker: Speaker, most: usize, stop: Scope) {
    let topic = agent.topics.from_agent(&agent.consumer);
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = link.connected() => {}
        }
        let resync = std::mem::take(&mut *agent.resync.lock());
        if resync && let Err(error) = tell_versions(&agent, &link, &speaker, &topic).await {
            tracing::debug!(%error, "the server was not told what is known; trying again");
            *agent.resync.lock() = true;
            pause(&link, &error, &stop).await;
            continue;
        }
        while under_way.len() < most {
            let next = agent.book.lock().next(agent.clock.now());
            let Some((id, say)) = next else { break };
            under_way.push(publish(&agent, &link, &speaker, &topic, id, say));
        }
        let refused = tokio::select! {
            () = stop.cancelled() => return,
            () = agent.to_say.notified(), if under_way.len() < most => None,
            Some(done) = under_way.next() => settle(&agent, done),
        };
        agent.count(&agent.book.lock());
        if let Some(error) = refused {
            // What else is on its way will fare alike: one pause for all of it.
            while let Some(done) = tokio::select! {
                () = stop.cancelled() => return,
                done = under_way.next() => done,
            } {
                settle(&agent, done);
            }
            pause(&link, &error, &stop).await;
        }
    }
}

/// Something that was said, and how that went.
struct Done {
    id: String,
    say: Say,
    result: Result<(), Failed>,
}

async fn publish(
    agent: &SharedAgent,
    link: &Link,
    speaker: &Speaker,
    topic: &str,
    id: String,
    say: Say,
) -> Done {
    let result = match speaker.say(&say, agent.clock.now()) {
        Ok(event) => tell(link, topic, &event).await,
        Err(error) => {
            tracing::error!(id, %error, "a status cannot be put into words");
            // It would be the same the next time.
            Ok(())
        }
    };
    Done { id, say, result }
}

/// Notes how it went; gives the error after which a pause is in order.
fn settle(agent: &SharedAgent, done: Done) -> Option<Failed> {
    let mut book = agent.book.lock();
    match done.result {
        Ok(()) => {
            agent.metrics.sent.inc();
            book.said(&done.id, &done.say);
            agent.to_write.notify_one();
            None
        }
        Err(Failed::Publish(PublishError::TooLarge(why))) => {
            // It would be too large the next time, too.
            tracing::error!(id = done.id, why, "a status is too large to be sent");
            agent.metrics.failed.inc();
            book.said(&done.id, &done.say);
            None
        }
        Err(error) => {
            agent.metrics.failed.inc();
            book.unsaid(&done.id, &done.say);
            Some(error)
        }
    }
}

/// After a lost connection the next one is waited for; after anything else, a while.
async fn pause(link: &Link, error: &Failed, stop: &Scope) {
    let pause = match error {
        Failed::Publish(PublishError::Down | PublishError::Lost) if !link.is_connected() => return,
        Failed::Publish(PublishError::Down | PublishError::Lost) => Duration::from_millis(10),
        Failed::Publish(_) => PAUSE,
        Failed::Unheard => UNHEARD,
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

async fn tell_versions(
    agent: &SharedAgent,
    link: &Link,
    speaker: &Speaker,
    topic: &str,
) -> Result<(), Failed> {
    let unclaimed = agent.engine.get().map(aro_work_engine::Engine::unclaimed).unwrap_or_default();
    let versions = agent.book.lock().versions(unclaimed);
    let count = versions.len();
    let pages = spec_pages(versions, PAGE);
    tracing::debug!(works = count, pages = pages.len(), "telling the server what is known");
    for (range, page) in pages {
        match speaker.resync(&range, &page, agent.clock.now()) {
            Ok(event) => tell(link, topic, &event).await?,
            Err(error) => tracing::error!(%error, "what is known cannot be put into words"),
        }
    }
    Ok(())
}

/// Writes down what is to be remembered; at the end what is left. The engine is told here of what was held until then.
pub async fn remember(agent: SharedAgent, mut ledger: Ledger, stop: Scope) {
    let mut somebody_waits = false;
    loop {
        let stopping = gather(&agent, somebody_waits, &stop).await;
        {
            let mut book = agent.book.lock();
            somebody_waits = book.begin_round();
            if stopping {
                book.last_round();
            }
        }
        if !write_due(&agent, &mut ledger).await && !stopping {
            somebody_waits = true;
            tokio::time::sleep(ledger::PAUSE).await;
        }
        if stopping {
            return;
        }
    }
}

/// Waits until there is something to write, and then a moment for more, unless the engine waits. Whether this is the end.
async fn gather(agent: &SharedAgent, somebody_waits: bool, stop: &Scope) -> bool {
    tokio::select! {
        () = stop.cancelled() => return true,
        () = agent.held.notified() => return false,
        () = agent.to_write.notified(), if !somebody_waits => {}
        () = std::future::ready(()), if somebody_waits => {}
    }
    tokio::select! {
        () = stop.cancelled() => true,
        () = agent.held.notified() => false,
        () = tokio::time::sleep(ledger::GATHER) => false,
    }
}

/// Writes what is due, and tells the engine of what was held. Not all could be written: the rest is still due.
async fn write_due(agent: &SharedAgent, ledger: &mut Ledger) -> bool {
    loop {
        let changes = agent.book.lock().take_due(Ledger::most());
        if changes.is_empty() {
            return true;
        }
        let ids: Vec<String> = changes.iter().map(|(id, _)| id.clone()).collect();
        let failed = ledger.write(changes).await;
        let released = agent.book.lock().release(ids.iter().filter(|id| !failed.contains(id)));
        if let Some(engine) = agent.engine.get() {
            for record in released {
                if record.deleting {
                    engine.leave(record.work());
                } else {
                    engine.put(record.work());
                }
            }
        }
        if !failed.is_empty() {
            agent.book.lock().not_written(failed);
            return false;
        }
    }
}
