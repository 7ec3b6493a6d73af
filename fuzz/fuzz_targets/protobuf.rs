//! Bodies of requests to the API server in protobuf.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for name in ["io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment", "io.k8s.api.core.v1.ConfigMap"] {
        let _ = aro_kube_protobuf::decode(bytes, |_, _| Some(name.to_owned()));
    }
});
