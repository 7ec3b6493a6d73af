//! `kill -9` of the process that writes.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use aro_base::{ManualClock, Timestamp};
use aro_store::{Batch, Container, DocId, DocKey, DocumentStore as _, NewDocument, Op, PartitionKey, Raw};
use aro_store_sqlite::{OpenError, SqliteOptions, SqliteStore};
use tokio::task::JoinSet;

const THINGS: Container = Container::new("things");
const DIRECTORY: &str = "ARO_TEST_CRASH_DIRECTORY";

fn clock() -> Arc<ManualClock> {
    ManualClock::at(Timestamp::from_second(1_800_000_000).expect("a time"))
}

fn pair(n: &str) -> Batch {
    let new = |id: String| NewDocument {
        resource_type: "t".to_owned(),
        resource_id: format!("/{id}"),
        ttl: None,
        body: Raw::of(&"x".repeat(500)).expect("a string is JSON"),
        id: DocId::new(&id),
    };
    Batch::new(THINGS, PartitionKey::new("p"))
        .with(Op::Create(new(format!("{n}-a"))))
        .with(Op::Create(new(format!("{n}-b"))))
}

/// Not a test: what the parent below runs in a process of its own. Says each name once it is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_killed_process_loses_no_acknowledged_batch"]
async fn child_writes_until_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = SqliteStore::open(SqliteOptions::new(PathBuf::from(directory)), clock()).expect("opens");
    let mut writers = JoinSet::new();
    for w in 0..8 {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for n in 0.. {
                let name = format!("{w}-{n}");
                store.write(pair(&name)).await.expect("written");
                println!("\nwritten {name}");
            }
        });
    }
    writers.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_no_acknowledged_batch() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--ignored", "--exact", "--nocapture", "crash::child_writes_until_killed"])
            .env(DIRECTORY, directory.path().join(round.to_string()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let wanted = 100 + round * 150;
        let mut names: Vec<String> = Vec::new();
        while names.len() < wanted {
            let line = lines.next().expect("the child writes on").expect("text");
            names.extend(line.strip_prefix("written ").map(str::to_owned));
        }
        let refused =
            SqliteStore::open(SqliteOptions::new(directory.path().join(round.to_string())), clock());
        let Err(OpenError::Locked { holder, .. }) = refused else { unreachable!("the child holds it") };
        assert_eq!(holder, child.id().to_string(), "and is named");
        child.kill().expect("killed");
        child.wait().expect("reaped");
        acknowledged.push(names);
    }
    for (round, names) in acknowledged.iter().enumerate() {
        let options = SqliteOptions::new(directory.path().join(round.to_string()));
        let store = SqliteStore::open(options, clock()).expect("opens after the kill");
        for name in names {
            for half in ["a", "b"] {
                let id = DocId::new(&format!("{name}-{half}"));
                let key = DocKey { container: THINGS, partition: PartitionKey::new("p"), id };
                assert!(
                    store.get(&key).await.expect("answers").is_some(),
                    "{key} was acknowledged and is gone"
                );
            }
        }
        // Batches that were not acknowledged are there as a whole or not at all.
        let mut changes = Vec::new();
        let mut cursor = None;
        loop {
            let page = store.changes(THINGS, cursor.as_ref(), 500).await.expect("answers");
            changes.extend(page.changes);
            if !page.more {
                break;
            }
            cursor = Some(page.next);
        }
        let halves =
            |end: &str| changes.iter().filter(|change| change.key().id.as_str().ends_with(end)).count();
        assert_eq!(halves("-a"), halves("-b"));
    }
}
