//! CloudEvents of Maestro and the bundles in them.
#![no_main]

use aro_bundle::{event, validate_data};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(event) = event::json::read_slice(bytes) {
        let _ = event::json::write(&event);
    }
    let _ = validate_data(bytes);
});
