//! Frames of kubectl's port-forward and exec.
#![no_main]

use aro_kube_spdy::{Connection, Limits, Side};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for side in [Side::Client, Side::Server] {
        let mut connection = Connection::new(side, Limits::default());
        for part in bytes.chunks(17) {
            if connection.receive(part).is_err() {
                break;
            }
        }
        let _ = connection.take_output();
    }
});
