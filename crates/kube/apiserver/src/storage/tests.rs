//! The storage against a model of it: what a list of maps and a counter would do.

mod bounds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aro_runtime::SystemClock;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const HISTORY: usize = 8;

fn object(key: &str, value: u64) -> Value {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    json!({"kind": "Thing", "metadata": {"name": name, "namespace": namespace, "labels": {"value": value.to_string()}}, "value": value})
}

fn open(dir: &Path) -> Engine {
    Engine::open(dir, false, HISTORY, SystemClock::shared()).unwrap()
}

fn store(engine: &Engine, name: &str) -> Option<Arc<ClusterStore>> {
    engine.stores().into_iter().find(|store| &*store.name == name)
}

/// A key and the value there.
type Content = BTreeMap<String, (u64, u64)>;

/// What is true about one cluster store, whatever the storage says.
#[derive(Debug, Clone, Default)]
struct Model {
    version: u64,
    now: Content,
    /// Everything as it was after each version.
    then: BTreeMap<u64, Content>,
    /// Version, kind, key, value.
    events: Vec<(u64, EventKind, String, u64)>,
    /// What happened before this process is not known any more.
    began: u64,
}

impl Model {
    fn put(&mut self, key: &str, value: u64) -> u64 {
        self.version += 1;
        let kind = if self.now.contains_key(key) { EventKind::Modified } else { EventKind::Added };
        self.now.insert(key.to_owned(), (self.version, value));
        self.record(kind, key, value)
    }

    fn delete(&mut self, key: &str) -> u64 {
        self.version += 1;
        let (_, value) = self.now.remove(key).unwrap();
        self.record(EventKind::Deleted, key, value)
    }

    fn record(&mut self, kind: EventKind, key: &str, value: u64) -> u64 {
        self.events.push((self.version, kind, key.to_owned(), value));
        self.then.insert(self.version, self.now.clone());
        self.version
    }

    fn at(&self, version: u64) -> Content {
        self.then.range(..=version).next_back().map(|(_, content)| content.clone()).unwrap_or_default()
    }
}

fn content(objects: &[Arc<Stored>]) -> Content {
    objects
        .iter()
        .map(|stored| {
            let tree = stored.value();
            assert_eq!(stored.json(), stored.json_bytes());
            let line: Value = serde_json::from_slice(&stored.line(EventKind::Added)).unwrap();
            assert_eq!(line, json!({"type": "ADDED", "object": tree}));
            assert_eq!(tree["metadata"]["resourceVersion"], stored.version.to_string());
            let value = tree["value"].as_u64().unwrap();
            assert_eq!(stored.label("value"), Some(value.to_string().as_str()));
            (stored.key.to_string(), (stored.version, value))
        })
        .collect()
}

fn compare(store: &ClusterStore, model: &Model) {
    let watch_cache = store.watch_cache("things");
    assert_eq!(store.version(), model.version, "the counter of {}", store.name);
    let listed = watch_cache.list("", None, usize::MAX, || store.version(), |_| true);
    assert_eq!(content(&listed.objects), model.now);
    assert_eq!(listed.version, model.version);
    assert_eq!((listed.more, listed.total), (false, Some(model.now.len())));
    for namespace in ["a/", "b/"] {
        let mut pages = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = watch_cache.list(namespace, after.as_deref(), 2, || store.version(), |_| true);
            let inside = model.now.keys().filter(|key| key.starts_with(namespace)).count();
            assert_eq!(page.total, after.is_none().then_some(inside));
            after = page.objects.last().map(|last| last.key.to_string());
            pages.extend(page.objects);
            if !page.more {
                break;
            }
        }
        let wanted = model.now.iter().filter(|(key, _)| key.starts_with(namespace));
        assert_eq!(content(&pages), wanted.map(|(key, value)| (key.clone(), *value)).collect());
    }
    let oldest = model.events.iter().rev().nth(HISTORY).map_or(model.began, |event| event.0.max(model.began));
    for version in model.began.saturating_sub(2)..=model.version {
        let known = match watch_cache.since(version, usize::MAX) {
            Ok(events) => {
                let events: Vec<_> = events
                    .iter()
                    .map(|event| {
                        let value = event.object.value()["value"].as_u64().unwrap();
                        let line = event.object.line(event.kind);
                        assert!(line.ends_with(b"}\n"));
                        let told = json!({"type": format!("{:?}", event.kind).to_uppercase(), "object": event.object.value()});
                        assert_eq!(serde_json::from_slice::<Value>(&line).unwrap(), told);
                        (event.object.version, event.kind, event.object.key.to_string(), value)
                    })
                    .collect();
                let wanted: Vec<_> = model.events.iter().filter(|event| event.0 > version).cloned().collect();
                assert_eq!(events, wanted, "since {version}");
                true
            }
            Err(old) => {
                assert!(
                    version < old.oldest && version < oldest,
                    "{version} is known, and said to be too old"
                );
                false
            }
        };
        match watch_cache.list_at(version, "", None, usize::MAX, |_| true) {
            Ok(listed) => {
                assert!(known);
                assert_eq!(content(&listed.objects), model.at(version), "at {version}");
                assert_eq!(listed.total, Some(listed.objects.len()), "at {version}");
                // Some of them in pages as well: that takes a while.
                if version % 8 == 0 {
                    assert_eq!(content(&pages_at(&watch_cache, version)), model.at(version), "at {version}");
                }
            }
            Err(_) => assert!(!known),
        }
    }
}

fn pages_at(watch_cache: &WatchCache, version: u64) -> Vec<Arc<Stored>> {
    let mut pages: Vec<Arc<Stored>> = Vec::new();
    loop {
        let after = pages.last().map(|last| last.key.to_string());
        let page = watch_cache.list_at(version, "", after.as_deref(), 2, |_| true).unwrap();
        pages.extend(page.objects);
        if !page.more {
            return pages;
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put {
        store: usize,
        key: usize,
    },
    Delete {
        store: usize,
        key: usize,
    },
    /// A write that was decided upon something old.
    Stale {
        store: usize,
        key: usize,
    },
    /// Several at once, so that they are queued behind one another.
    Burst {
        store: usize,
        count: usize,
    },
    Compact,
    Reopen,
    Drop {
        store: usize,
    },
}

const SPACES: [&str; 3] = ["one", "two", "three"];
const KEYS: [&str; 6] = ["a/x", "a/y", "a/z", "b/x", "b/y", "ab/x"];

fn step() -> impl Strategy<Value = Step> {
    let (store, key) = (0..SPACES.len(), 0..KEYS.len());
    prop_oneof![
        12 => (store.clone(), key.clone()).prop_map(|(store, key)| Step::Put { store, key }),
        6 => (store.clone(), key.clone()).prop_map(|(store, key)| Step::Delete { store, key }),
        2 => (store.clone(), key).prop_map(|(store, key)| Step::Stale { store, key }),
        2 => (store.clone(), 1..90_usize).prop_map(|(store, count)| Step::Burst { store, count }),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
        1 => store.prop_map(|store| Step::Drop { store }),
    ]
}

async fn run(steps: Vec<Step>) {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let mut models: BTreeMap<&str, Model> = BTreeMap::new();
    let mut value = 0;
    for step in steps {
        value += 1;
        let name = match &step {
            Step::Put { store, .. } | Step::Delete { store, .. } | Step::Stale { store, .. } => {
                SPACES[*store]
            }
            Step::Burst { store, .. } | Step::Drop { store } => SPACES[*store],
            Step::Compact | Step::Reopen => "",
        };
        if !name.is_empty() && !models.contains_key(name) {
            engine.create(name, name.as_bytes().to_vec()).await.unwrap();
            models.insert(name, Model::default());
        }
        match step {
            Step::Put { key, .. } => {
                let (store, model, key) =
                    (store(&engine, name).unwrap(), models.get_mut(name).unwrap(), KEYS[key]);
                let watch_cache = store.watch_cache("things");
                let expect =
                    model.now.get(key).map_or(Expect::Absent, |(version, _)| Expect::Version(*version));
                let draft = Draft::of(&object(key, value));
                let written = store.commit(&watch_cache, key, expect, Change::Put(draft)).await.unwrap();
                assert_eq!(written.version, model.put(key, value));
            }
            Step::Delete { key, .. } => {
                let (store, model, key) =
                    (store(&engine, name).unwrap(), models.get_mut(name).unwrap(), KEYS[key]);
                let watch_cache = store.watch_cache("things");
                let expect = Expect::Version(model.now.get(key).map_or(1, |(version, _)| *version));
                let gone = store.commit(&watch_cache, key, expect, Change::Delete).await;
                if model.now.contains_key(key) {
                    assert_eq!(gone.unwrap().version, model.delete(key));
                } else {
                    assert!(matches!(gone, Err(WriteFailed::Changed(None))));
                }
            }
            Step::Stale { key, .. } => {
                let (store, model, key) = (store(&engine, name).unwrap(), &models[name], KEYS[key]);
                let expect = if model.now.contains_key(key) { Expect::Absent } else { Expect::Version(7) };
                let draft = Draft::of(&object(key, value));
                let refused =
                    store.commit(&store.watch_cache("things"), key, expect, Change::Put(draft)).await;
                assert!(matches!(refused, Err(WriteFailed::Changed(_))));
            }
            Step::Burst { count, .. } => {
                let (store, model) = (store(&engine, name).unwrap(), models.get_mut(name).unwrap());
                let watch_cache = store.watch_cache("things");
                let mut writes = Vec::new();
                for index in 0..count {
                    let key = KEYS[index % KEYS.len()];
                    let latest = store.latest(&watch_cache, key).map(|stored| stored.version);
                    assert_eq!(
                        latest,
                        model.now.get(key).map(|(version, _)| *version),
                        "what is queued counts"
                    );
                    let expect = latest.map_or(Expect::Absent, Expect::Version);
                    let draft = Draft::of(&object(key, value));
                    let mut write = Box::pin({
                        let (store, watch_cache) = (store.clone(), watch_cache.clone());
                        async move { store.commit(&watch_cache, key, expect, Change::Put(draft)).await }
                    });
                    let _ = futures::poll!(&mut write);
                    writes.push(write);
                    model.put(key, value);
                }
                // A write whose caller is gone stands.
                drop(writes);
                let mut versions = store.versions();
                versions.wait_for(|version| *version >= model.version).await.unwrap();
            }
            Step::Compact => engine.compact(),
            Step::Reopen => {
                engine.close();
                drop(engine);
                engine = open(dir.path());
                let mut found: Vec<String> =
                    engine.stores().iter().map(|store| store.name.to_string()).collect();
                found.sort();
                let mut wanted: Vec<&str> = models.keys().copied().collect();
                wanted.sort_unstable();
                assert_eq!(found, wanted);
                for (name, model) in &mut models {
                    model.began = model.version;
                    assert_eq!(&*store(&engine, name).unwrap().data(), name.as_bytes());
                }
            }
            Step::Drop { .. } => {
                let gone = store(&engine, name).unwrap();
                engine.drop_space(&gone).await.unwrap();
                models.remove(name);
                let (watch_cache, draft) = (gone.watch_cache("things"), Draft::of(&object("q/q", 1)));
                let refused = gone.commit(&watch_cache, "q/q", Expect::Absent, Change::Put(draft)).await;
                assert!(matches!(refused, Err(WriteFailed::Unavailable)));
            }
        }
        for (name, model) in &models {
            compare(&store(&engine, name).unwrap(), model);
        }
    }
    let bytes: usize = engine.stores().iter().map(|store| usize::try_from(store.live()).unwrap()).sum();
    assert_eq!(engine.usage().0, bytes as u64, "what is alive is counted right");
    engine.close();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_a_map_and_a_counter_would(steps in prop::collection::vec(step(), 1..60)) {
        runtime().block_on(run(steps));
    }

    #[test]
    fn a_torn_log_gives_back_a_prefix_of_what_was_written(count in 1..40_u64, cut in 0.0..1.0_f64, rubbish: Vec<u8>) {
        runtime().block_on(torn(count, cut, &rubbish));
    }
}

fn newest_segment(dir: &Path) -> PathBuf {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "log")).max().unwrap()
}

async fn torn(count: u64, cut: f64, rubbish: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let things = engine.create("one", b"keys".to_vec()).await.unwrap();
    let watch_cache = things.watch_cache("things");
    engine.close();
    drop((engine, things, watch_cache));
    let engine = open(dir.path());
    let things = store(&engine, "one").unwrap();
    let watch_cache = things.watch_cache("things");
    let mut model = Model::default();
    for value in 1..=count {
        let key = KEYS[usize::try_from(value).unwrap() % KEYS.len()];
        let expect = model.now.get(key).map_or(Expect::Absent, |(version, _)| Expect::Version(*version));
        let delete = value % 5 == 0 && expect != Expect::Absent;
        let change = if delete { Change::Delete } else { Change::Put(Draft::of(&object(key, value))) };
        things.commit(&watch_cache, key, expect, change).await.unwrap();
        if delete {
            model.delete(key)
        } else {
            model.put(key, value)
        };
    }
    engine.close();
    drop((engine, things, watch_cache));
    let path = newest_segment(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "some place in the file"
    )]
    let cut = (used as f64 * cut) as usize;
    let mut left = bytes[..cut].to_vec();
    left.extend_from_slice(rubbish);
    std::fs::write(&path, left).unwrap();
    let engine = open(dir.path());
    let things = store(&engine, "one").unwrap();
    let found = content(&things.watch_cache("things").all());
    assert_eq!(found, model.at(things.version()), "it is what it was at version {}", things.version());
    // And it goes on from there.
    let before = things.version();
    let draft = Draft::of(&object("new/one", 1));
    let fresh = things
        .commit(&things.watch_cache("things"), "new/one", Expect::Absent, Change::Put(draft))
        .await
        .unwrap();
    assert_eq!(fresh.version, before + 1);
    engine.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_on_the_logs_thread_fails_the_storage_and_hangs_no_writer() {
    const LONG: std::time::Duration = std::time::Duration::from_secs(20);
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let things = engine.create("one", Vec::new()).await.unwrap();
    things.observe(|_, _| panic!("a bug of an observer"));
    let watch_cache = things.watch_cache("things");
    for key in ["ns/a", "ns/b"] {
        let draft = Draft::of(&object(key, 1));
        let write = things.commit(&watch_cache, key, Expect::Absent, Change::Put(draft));
        let refused = tokio::time::timeout(LONG, write).await.expect("the writer is answered");
        assert!(matches!(refused, Err(WriteFailed::Unavailable)), "{key}: {refused:?}");
        tokio::time::timeout(LONG, engine.failed()).await.expect("the process learns of it");
    }
    engine.close();
}

/// Makes segments: each start begins a new one.
fn several_segments(dir: &Path, count: usize) -> Engine {
    for _ in 1..count {
        open(dir).close();
    }
    open(dir)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_during_writes_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..6_u64 {
        let engine = Arc::new(several_segments(dir.path(), 3));
        let things = match store(&engine, "one") {
            Some(things) => things,
            None => engine.create("one", Vec::new()).await.unwrap(),
        };
        let watch_cache = things.watch_cache("things");
        for (key, value) in &counts {
            assert_eq!(
                watch_cache.get(key).map(|stored| stored.value()["value"].as_u64().unwrap()),
                Some(*value),
                "{key}"
            );
        }
        assert_eq!(watch_cache.len(), counts.len());
        let done = Arc::new(AtomicBool::new(false));
        let compacting = {
            let (engine, done) = (engine.clone(), done.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    engine.compact();
                }
            })
        };
        for index in 0..400_u64 {
            let key = format!("ns/{}", (index * 7 + round) % 97);
            let latest = things.latest(&watch_cache, &key);
            let expect = latest.as_ref().map_or(Expect::Absent, |stored| Expect::Version(stored.version));
            if latest.is_some() && index % 3 == 0 {
                things.commit(&watch_cache, &key, expect, Change::Delete).await.unwrap();
                counts.remove(&key);
            } else {
                let value = round * 1000 + index;
                things
                    .commit(&watch_cache, &key, expect, Change::Put(Draft::of(&object(&key, value))))
                    .await
                    .unwrap();
                counts.insert(key, value);
            }
        }
        let version = things.version();
        assert_eq!(version, (round + 1) * 400);
        done.store(true, Ordering::Relaxed);
        compacting.join().unwrap();
        engine.close();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_space_dropped_during_compaction_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let stay = AtomicU64::new(0);
    for _ in 0..4 {
        let engine = Arc::new(several_segments(dir.path(), 3));
        for left in engine.stores() {
            assert!(left.name.starts_with("stays"), "{} is back", left.name);
        }
        let done = Arc::new(AtomicBool::new(false));
        let compacting = {
            let (engine, done) = (engine.clone(), done.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    engine.compact();
                }
            })
        };
        engine.create(&format!("stays-{}", stay.fetch_add(1, Ordering::Relaxed)), Vec::new()).await.unwrap();
        for index in 0..100 {
            let name = format!("goes-{index}");
            let goes = engine.create(&name, Vec::new()).await.unwrap();
            let draft = Draft::of(&object("a/x", 1));
            goes.commit(&goes.watch_cache("things"), "a/x", Expect::Absent, Change::Put(draft))
                .await
                .unwrap();
            engine.drop_space(&goes).await.unwrap();
        }
        done.store(true, Ordering::Relaxed);
        compacting.join().unwrap();
        engine.close();
    }
    let engine = open(dir.path());
    assert_eq!(engine.stores().len(), 4);
    engine.close();
}

#[test]
fn a_second_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let error = Engine::open(dir.path(), false, HISTORY, SystemClock::shared()).unwrap_err();
    let message = aro_base::chain(&error).to_string();
    assert!(message.contains("another process") || message.contains("in use"), "{message}");
    engine.close();
}
