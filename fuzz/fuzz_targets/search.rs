//! The search and order grammar that Maestro and Clusters Service share, and what both make of it.
#![no_main]

use aro_clusters_service::search::{self as clusters_service, Table as Objects};
use aro_maestro::search::{Table, condition, order};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = aro_ocm::search::parse(text);
    let _ = aro_ocm::search::order(text);
    for table in [Table::Bundles, Table::Consumers] {
        let _ = condition(table, text);
        let _ = order(table, text);
    }
    for table in [Objects::Clusters, Objects::NodePools, Objects::Credentials, Objects::Versions] {
        let found = clusters_service::condition(table, text);
        let _ = clusters_service::order(table, text);
        if let (Objects::Clusters, Ok(condition)) = (table, found) {
            let _ = clusters_service::plan::plan(condition.as_ref());
        }
    }
});
