//! Definitions of custom resources: admission and compilation of schemas.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(mut definition) = serde_json::from_str::<serde_json::Value>(text) else { return };
    let _ = aro_kube_crd::definition::admit(&mut definition, None);
    let definitions = Arc::new(aro_kube_apimachinery::Definitions::default());
    if let Ok(custom) = aro_kube_crd::compile(&definition, "v1", &definitions) {
        let mut object = definition.clone();
        custom.default(&mut object);
        let _ = custom.prune(&mut object);
    }
});
