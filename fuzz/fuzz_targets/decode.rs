//! Bodies of requests to the API server in JSON and YAML, and managed fields.
#![no_main]

use aro_kube_apimachinery::apply::Set;
use aro_kube_apimachinery::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = decode::type_meta(bytes);
    if let Ok((value, _)) = decode::parse(bytes)
        && let Ok(set) = Set::from_fields_v1(&value)
    {
        let _ = set.to_fields_v1();
    }
    let _ = decode::parse_yaml(bytes);
});
