//! The search and order grammars of Maestro's lists.
#![no_main]

use aro_maestro::search::{Table, condition, order};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for table in [Table::Bundles, Table::Consumers] {
        let _ = condition(table, text);
        let _ = order(table, text);
    }
});
