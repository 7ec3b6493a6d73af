//! Measures a search for one label among many documents of about 7 kB, and the list of them all. Starts a server of its own.
//! Run with `cargo run --release -p aro-store-postgres --example search [documents]`.
#![allow(clippy::print_stdout, reason = "it prints its results")]

use aro_base::{ManualClock, Timestamp};
use aro_store::testing::postgres::TestPostgres;
use aro_store::{
    Batch, Container, DocId, DocumentStore as _, Expr, NewDocument, Op, PartitionKey, Path, Query, Raw, Slice,
};
use aro_store_postgres::{PostgresOptions, PostgresStore};
use serde_json::{Value, json};
use tokio::time::Instant;

const BUNDLES: Container = Container::new("bundles");
const KIND: &str = "bundle";
const LABEL: &str = "api.openshift.com/id";

fn body(number: usize) -> Value {
    let map = |part: usize| {
        let data: Vec<(String, Value)> = (0..12)
            .map(|key| {
                (format!("key-{key}"), format!("value {key} of map {part} in bundle {number} ").repeat(3))
            })
            .map(|(key, value)| (key, value.into()))
            .collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{part}")},
            "data": Value::Object(data.into_iter().collect())})
    };
    let maps: Vec<Value> = (0..3).map(map).collect();
    json!({"payload": {"metadata": {"labels": {LABEL: format!("cluster-{number}")}}, "data": {"manifests": maps}}})
}

fn document(number: usize) -> Result<NewDocument, serde_json::Error> {
    Ok(NewDocument {
        id: DocId::new(&number.to_string()),
        resource_type: KIND.to_owned(),
        resource_id: format!("/bundles/{number}"),
        ttl: None,
        body: Raw::of(&body(number))?,
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(6000), |text| text.parse())?;
    let server = TestPostgres::launch()?;
    let options = PostgresOptions::new(server.fresh_schema()?);
    PostgresStore::migrate(&options).await?;
    let clock = ManualClock::at(Timestamp::from_second(1_800_000_000)?);
    let store = PostgresStore::connect(options, clock).await?;
    let numbers: Vec<usize> = (0..count).collect();
    for chunk in numbers.chunks(100) {
        let mut batch = Batch::new(BUNDLES, PartitionKey::new(&chunk[0].to_string()));
        for number in chunk {
            batch.push(Op::Create(document(*number)?));
        }
        store.write(batch).await?;
    }
    let path = Path::new(["payload", "metadata", "labels", LABEL])?;
    let wanted = Expr::is(path, format!("cluster-{}", count / 2)).check()?;
    let search = Query::all(BUNDLES).of_type(KIND).matching(wanted);
    let everything = Query::all(BUNDLES).of_type(KIND);
    let slice = Slice { size: 100_000, oldest_first: true, ..Slice::default() };
    for (what, query) in [("search for one label", &search), ("list", &everything)] {
        for _ in 0..5 {
            let began = Instant::now();
            let found = store.slice(query, &slice).await?;
            let bytes: usize = found.iter().map(|document| document.body.get().len()).sum();
            println!("{what}: {} of {count}, {bytes} bytes, {:?}", found.len(), began.elapsed());
        }
    }
    store.close().await;
    Ok(())
}
