//! Label and field selectors.
#![no_main]

use aro_kube_apimachinery::selector::{FieldSelector, LabelSelector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(selector) = LabelSelector::parse(text) {
        let _ = selector.matches(|name| (name.len() % 2 == 0).then_some("a"));
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let _ = selector.matches(|name| (name.len() % 2 == 0).then_some("a"));
    }
});
