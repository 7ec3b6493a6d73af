//! MQTT frames, as broker and clients read them.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut buffer = BytesMut::from(bytes);
    while let Ok(Some(_)) = aro_mqtt::wire::take_frame(&mut buffer, 1 << 20) {}
});
