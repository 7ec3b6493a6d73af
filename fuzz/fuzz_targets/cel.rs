//! Expressions of CRDs and manifest works: parsing, lowering, evaluation, regular expressions.
#![no_main]

use aro_kube_crd::Expression;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|source: &str| {
    let object = json!({"a": [{"b": "x", "n": 1}, "1"], "m": {"k": 2.5}, "t": "2026-01-01T00:00:00Z"});
    if let Ok(expression) = Expression::compile(source) {
        let _ = expression.truth(&object, Some(&json!(true)));
    }
});
