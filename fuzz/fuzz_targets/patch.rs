//! JSON patches and merge patches.
#![no_main]

use aro_kube_apimachinery::patch;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let Ok(patch) = serde_json::from_str::<Value>(text) else { return };
    let object = json!({"a": [{"b": "x", "n": 1}, "1"], "m": {"k": 2.5}, "metadata": {"name": "x"}});
    let _ = patch::json_patch(&object, &patch);
    let _ = patch::merge_patch(&object, &patch);
});
