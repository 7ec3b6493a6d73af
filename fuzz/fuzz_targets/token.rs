//! Tokens and the key sets that verify them.
#![no_main]

use aro_pki::jws::KeySet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (keys, token) = text.split_once('\n').unwrap_or((text, text));
    let keys = KeySet::from_json(keys.as_bytes()).unwrap_or_default();
    assert!(keys.verify(token).is_err(), "a forged token was accepted");
});
