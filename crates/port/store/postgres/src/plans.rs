//! Holds the statements to the index they are meant for, on a table that the planner knows nothing about: the plan a
//! session makes then is kept while the table grows.

use std::time::Duration;

use aro_store::testing::postgres::TestPostgres;

use crate::feed::CHANGES;
use crate::pool::session_settings;
use crate::read::GET;
use crate::{PostgresOptions, schema};

/// The plan of a statement, for any parameters.
fn plan(server: &TestPostgres, statement: &str, types: &str, values: &str) -> String {
    let settings = session_settings(Duration::from_secs(10));
    let sql = format!(
        "SET search_path = t0; {settings}; SET plan_cache_mode = force_generic_plan;
         PREPARE s ({types}) AS {statement}; EXPLAIN (COSTS off) EXECUTE s ({values})"
    );
    server.sql(&sql).expect("a plan")
}

#[tokio::test]
async fn frequent_statements_use_their_index_while_the_table_is_empty() {
    let server = TestPostgres::launch().expect("PostgreSQL starts");
    let options = PostgresOptions::new(server.fresh_schema().expect("a schema"));
    schema::migrate(&options).await.expect("the migration works");

    let get = plan(&server, GET, "text, text, text, bigint", "'c', 'p', 'i', 1");
    assert!(get.contains("using store_document_pkey") && get.contains("(id >= $3)"), "{get}");

    let changes = plan(&server, CHANGES, "text, bigint, bigint, bigint, bigint", "'c', 1, 1, 1, 200");
    assert_eq!(changes.matches("using store_feed").count(), 2, "{changes}");
    assert_eq!(changes.matches("on store_document").count(), 2, "{changes}");
}
