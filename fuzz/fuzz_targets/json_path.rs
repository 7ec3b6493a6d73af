//! Paths of printer columns, scale and selectable fields.
#![no_main]

use aro_kube_crd::JsonPath;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|source: &str| {
    if let Some(path) = JsonPath::parse(source) {
        let _ = path.find(&json!({"a": [{"a": 1, "b": [[1], {"c": "d"}]}, "1"], "b": {"a": null}}));
    }
});
