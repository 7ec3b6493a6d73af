//! Events: what `kubectl describe` shows below an object. Best effort, as everywhere in Kubernetes.
//!
//! They are written by one task beside the controllers, so that no pass waits for them. When more come than can be
//! written, the rest is dropped and counted; an event that repeats within a while only gets a higher count.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aro_base::{SharedClock, SignedDuration, Timestamp};
use aro_runtime::{Fault, Scope, TaskKind};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Takes events and has them written.
#[derive(Debug, Clone)]
pub struct Recorder {
    component: &'static str,
    queue: mpsc::Sender<Note>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug, Clone)]
struct Note {
    component: &'static str,
    object: ObjectReference,
    warning: bool,
    reason: &'static str,
    message: String,
}

/// Events that wait to be written; more are dropped.
const WAITING: usize = 512;
/// Events written at once, and per second in the long run. A start of ten thousand pods needs no ten thousand events,
/// and writing them would cost more than the pods.
const BURST: f64 = 500.0;
const PER_SECOND: f64 = 50.0;
/// Events remembered for counting repetitions.
const REMEMBERED: usize = 4096;
/// How long a repetition counts as the same event.
const SAME: SignedDuration = SignedDuration::from_mins(10);

/// Refers to an object in events and owner references.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: Some(object.name_any()),
        namespace: object.namespace(),
        uid: object.uid(),
        resource_version: object.resource_version(),
        field_path: None,
    }
}

impl Recorder {
    /// Starts writing events under a component's name.
    pub fn start(client: Client, clock: SharedClock, component: &'static str, scope: &Scope) -> Self {
        let (queue, notes) = mpsc::channel(WAITING);
        let dropped: Arc<AtomicU64> = Arc::default();
        let counting = dropped.clone();
        scope.spawn(TaskKind::Helper, "events", async move {
            Writer { client, clock, known: HashMap::new() }.run(notes, counting).await;
            Ok::<_, Fault>(())
        });
        Self { component, queue, dropped }
    }

    /// The same, under another component's name.
    pub fn named(&self, component: &'static str) -> Self {
        Self { component, ..self.clone() }
    }

    /// Something happened as it should.
    pub fn normal<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.record(object, false, reason, message.into());
    }

    /// An event of type Warning.
    pub fn warning<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.record(object, true, reason, message.into());
    }

    /// How many were dropped because too many came at once.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn record<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        warning: bool,
        reason: &'static str,
        message: String,
    ) {
        let note = Note { component: self.component, object: reference(object), warning, reason, message };
        if self.queue.try_send(note).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How many events may be written.
struct Budget {
    left: f64,
    at: Instant,
}

impl Budget {
    fn take(&mut self, now: Instant) -> bool {
        self.left = (self.left + (now - self.at).as_secs_f64() * PER_SECOND).min(BURST);
        self.at = now;
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

struct Writer {
    client: Client,
    clock: SharedClock,
    /// What was written lately: name of the event, count, when.
    known: HashMap<(String, &'static str, String), (String, i32, Timestamp)>,
}

impl Writer {
    async fn run(mut self, mut notes: mpsc::Receiver<Note>, dropped: Arc<AtomicU64>) {
        let mut budget = Budget { left: BURST, at: Instant::now() };
        while let Some(note) = notes.recv().await {
            if !budget.take(Instant::now()) {
                dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let reason = note.reason;
            if let Err(error) = self.write(note).await {
                tracing::debug!(reason, %error, "an event could not be written");
            }
        }
    }

    async fn write(&mut self, note: Note) -> Result<(), kube::Error> {
        let now = self.clock.now();
        let namespace = note.object.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        if self.known.len() >= REMEMBERED {
            self.known.retain(|_, (_, _, at)| now.duration_since(*at) < SAME);
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
        }
        let same = (note.object.uid.clone().unwrap_or_default(), note.reason, note.message.clone());
        if let Some((name, count, at)) = self.known.get_mut(&same)
            && now.duration_since(*at) < SAME
        {
            let patch = json!({"count": *count + 1, "lastTimestamp": Time(now)});
            match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(_) => {
                    (*count, *at) = (*count + 1, now);
                    return Ok(());
                }
                // It expired or was deleted: write it anew.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let event = event(&note, &namespace, now);
        let name = event.name_any();
        api.create(&PostParams::default(), &event).await?;
        self.known.insert(same, (name, 1, now));
        Ok(())
    }
}

fn event(note: &Note, namespace: &str, now: Timestamp) -> Event {
    let about = note.object.name.clone().unwrap_or_default();
    // The object, and something that is different each time.
    let unique = uuid::Uuid::now_v7().simple().to_string();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{about}.{}", &unique[unique.len() - 16..])),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: note.object.clone(),
        type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(note.reason.to_owned()),
        message: Some(note.message.clone()),
        source: Some(EventSource { component: Some(note.component.to_owned()), host: None }),
        reporting_component: Some(note.component.to_owned()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_written_and_then_so_many_a_second() {
        let began = Instant::now();
        let mut budget = Budget { left: BURST, at: began };
        let at_once = (0..5000).filter(|_| budget.take(began)).count();
        assert_eq!(at_once, BURST as usize);
        let later = began + Duration::from_secs(2);
        assert_eq!((0..5000).filter(|_| budget.take(later)).count(), 2 * PER_SECOND as usize);
    }
}
