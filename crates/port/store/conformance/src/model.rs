//! Random histories against a map that is obviously right.

use std::collections::BTreeMap;
use std::time::Duration;

use aro_base::{Clock as _, ETag, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::{Fixture, THINGS, doc_with, drain, get, ids, part};
use aro_store::{Batch, Change, DocId, NewDocument, Op, Query, StoreError};

/// One step of a history, in terms that can be generated without knowing the state.
#[derive(Debug, Clone)]
enum Step {
    /// A batch: per operation its kind, the document, whether it names the right etag, and a time to live.
    Batch {
        partition: u8,
        ops: BTreeMap<u8, (Kind, bool, Option<u8>)>,
    },
    Advance(u8),
    Purge,
    Reopen,
    /// Read everything and compare.
    Compare,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Create,
    Replace,
    Delete,
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        3 => Just(Kind::Create),
        4 => Just(Kind::Replace),
        2 => Just(Kind::Delete),
        1 => Just(Kind::Check)
    ];
    let op = (kind, prop::bool::weighted(0.85), prop::option::weighted(0.2, 1..40_u8));
    prop_oneof![
        30 => (0..3_u8, prop::collection::btree_map(0..6_u8, op, 1..5))
            .prop_map(|(partition, ops)| Step::Batch { partition, ops }),
        4 => (1..30_u8).prop_map(Step::Advance),
        1 => Just(Step::Purge),
        1 => Just(Step::Reopen),
        4 => Just(Step::Compare),
    ]
}

struct Entry {
    etag: ETag,
    version: u64,
    body: String,
    expires: Option<Timestamp>,
}

#[derive(Default)]
struct Model {
    live: BTreeMap<(u8, u8), Entry>,
    /// The greatest version each key ever had.
    versions: BTreeMap<(u8, u8), u64>,
    writes: u64,
}

/// Every outcome of every batch, every document and the feed's final state agree with the map.
pub async fn random_histories_agree_with_a_map<F: Fixture>(fixture: &mut F) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut model = Model::default();
    // One long history instead of many short ones: a fresh store per case is slow, and old state finds more.
    let steps = vec(step(), 400).new_tree(&mut runner).expect("steps can be generated").current();
    for step in &steps {
        run(fixture, &mut model, step).await;
    }
    compare(fixture, &mut model).await;
}

async fn run<F: Fixture>(fixture: &mut F, model: &mut Model, step: &Step) {
    match step {
        Step::Batch { partition, ops } => write(fixture, model, *partition, ops).await,
        Step::Advance(seconds) => {
            fixture.clock().advance(Duration::from_secs((*seconds).into()).try_into().expect("a short time"));
        }
        Step::Purge => fixture.purge().await,
        Step::Reopen => fixture.reopen().await,
        Step::Compare => compare(fixture, model).await,
    }
}

async fn write<F: Fixture>(
    fixture: &F,
    model: &mut Model,
    partition: u8,
    ops: &BTreeMap<u8, (Kind, bool, Option<u8>)>,
) {
    let now = fixture.clock().now();
    model.live.retain(|_, entry| entry.expires.is_none_or(|expires| expires > now));
    let mut batch = Batch::new(THINGS, part(&format!("p{partition}")));
    let mut expected_conflict = None;
    for (index, (id, (kind, right, ttl))) in ops.iter().enumerate() {
        let current = model.live.get(&(partition, *id));
        let etag = match current {
            Some(entry) if *right => entry.etag.clone(),
            _ => ETag::new("wrong"),
        };
        let holds = match kind {
            Kind::Create => current.is_none(),
            Kind::Replace | Kind::Delete | Kind::Check => current.is_some() && *right,
        };
        if !holds && expected_conflict.is_none() {
            expected_conflict = Some((index, current.map(|entry| entry.etag.clone())));
        }
        let new = new_document(*id, model.writes, *ttl);
        batch.push(match kind {
            Kind::Create => Op::Create(new),
            Kind::Replace => Op::Replace(new, etag),
            Kind::Delete => Op::Delete(DocId::new(&format!("d{id}")), etag),
            Kind::Check => Op::Check(DocId::new(&format!("d{id}")), etag),
        });
    }
    let result = fixture.store().write(batch).await;
    let written = match (result, expected_conflict) {
        (Ok(written), None) => written,
        (Err(StoreError::Conflict { index, now, .. }), Some(expected)) => {
            assert_eq!((index, now), expected);
            return;
        }
        (result, expected) => unreachable!("got {result:?}, expected conflict {expected:?}"),
    };
    for ((id, (kind, _, ttl)), written) in ops.iter().zip(written) {
        let key = (partition, *id);
        let last = model.versions.entry(key).or_default();
        match kind {
            Kind::Check => assert_eq!(written.version, *last),
            Kind::Delete => {
                assert!(written.version > *last);
                *last = written.version;
                model.live.remove(&key);
            }
            Kind::Create | Kind::Replace => {
                assert!(written.version > *last);
                *last = written.version;
                let body = new_document(*id, model.writes, *ttl).body.get().to_owned();
                let expires = ttl.map(|ttl| now + Duration::from_secs(ttl.into()));
                let entry = Entry { etag: written.etag, version: written.version, body, expires };
                model.live.insert(key, entry);
            }
        }
    }
    model.writes += 1;
}

fn new_document(id: u8, write: u64, ttl: Option<u8>) -> NewDocument {
    let ttl = ttl.map(|seconds| Duration::from_secs(seconds.into()));
    NewDocument { ttl, ..doc_with(&format!("d{id}"), &serde_json::json!({ "write": write })) }
}

async fn compare<F: Fixture>(fixture: &F, model: &mut Model) {
    let store = fixture.store();
    let now = fixture.clock().now();
    model.live.retain(|_, entry| entry.expires.is_none_or(|expires| expires > now));
    for partition in 0..3_u8 {
        let name = format!("p{partition}");
        let query = Query::partition(THINGS, part(&name));
        let expected: Vec<String> =
            model.live.keys().filter(|key| key.0 == partition).map(|key| format!("d{}", key.1)).collect();
        assert_eq!(ids(&store, &query, 2).await, expected);
        for id in 0..6_u8 {
            let read = get(&store, &name, &format!("d{id}")).await;
            let read = read.map(|read| (read.etag, read.version, read.body.get().to_owned()));
            let entry = model.live.get(&(partition, id));
            assert_eq!(read, entry.map(|entry| (entry.etag.clone(), entry.version, entry.body.clone())));
        }
    }
    let (changes, _) = drain(&store, None, 5).await;
    for change in changes {
        let Change::Upsert(document) = change else { continue };
        let partition = document.key.partition.as_str().trim_start_matches('p').parse().expect("a number");
        let id = document.key.id.as_str().trim_start_matches('d').parse().expect("a number");
        assert_eq!(model.live.get(&(partition, id)).map(|entry| entry.version), Some(document.version));
    }
}
