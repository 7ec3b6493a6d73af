use proptest::prelude::*;

use super::*;

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    out.extend_from_slice(bytes);
    out
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &meta), field(2, raw), field(3, b""), field(4, b"")].concat()
}

#[allow(clippy::unnecessary_wraps, reason = "what decoding asks for")]
fn find(api_version: &str, kind: &str) -> Option<String> {
    let group = api_version.split_once('/').map_or("core", |(group, _)| group);
    Some(format!("io.k8s.api.{group}.v1.{kind}"))
}

#[test]
fn a_config_map_is_read() {
    // metadata { name: "a", creationTimestamp: {} }, data { "k": "v" }, binaryData { "b": 01 }
    let metadata = [field(1, b"a"), field(8, b"")].concat();
    let data = field(2, &[field(1, b"k"), field(2, b"v")].concat());
    let binary = field(3, &[field(1, b"b"), field(2, &[1])].concat());
    let raw = [field(1, &metadata), data, binary].concat();
    let decoded = decode(&envelope("v1", "ConfigMap", &raw), find).unwrap();
    assert_eq!(
        decoded.object,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}, "binaryData": {"b": "AQ=="}})
    );
}

#[test]
fn embedded_members_and_named_lists_appear_as_in_json() {
    // EnvVarSource.secretKeyRef: its LocalObjectReference has no name in JSON.
    let selector = [field(1, &field(1, b"secret")), field(2, b"key")].concat();
    let read = value::message(&selector, "io.k8s.api.core.v1.SecretKeySelector", 0).unwrap();
    assert_eq!(read, json!({"name": "secret", "key": "key"}));
    // A volume's source, too.
    let volume = [field(1, b"v"), field(2, &field(2, b""))].concat();
    let read = value::message(&volume, "io.k8s.api.core.v1.Volume", 0).unwrap();
    assert_eq!(read, json!({"name": "v", "emptyDir": {}}));
}

#[test]
fn numbers_or_texts_and_amounts_are_plain_values() {
    let port = [vec![0x08, 0x00, 0x10, 80], field(3, b"")].concat();
    assert_eq!(
        value::message(&port, "io.k8s.apimachinery.pkg.util.intstr.IntOrString", 0).unwrap(),
        json!(80)
    );
    let name = [vec![0x08, 0x01, 0x10, 0], field(3, b"http")].concat();
    assert_eq!(
        value::message(&name, "io.k8s.apimachinery.pkg.util.intstr.IntOrString", 0).unwrap(),
        json!("http")
    );
    let quantity = field(1, b"100m");
    assert_eq!(
        value::message(&quantity, "io.k8s.apimachinery.pkg.api.resource.Quantity", 0).unwrap(),
        json!("100m")
    );
}

#[test]
fn what_is_no_envelope_is_refused() {
    assert_eq!(decode(b"{}", find), Err(WireError::NoEnvelope));
    assert!(decode(b"k8s\0\xff\xff", find).is_err());
}

proptest! {
    #[test]
    fn nonsense_never_panics(bytes: Vec<u8>) {
        let _ = value::message(&bytes, "io.k8s.api.core.v1.Pod", 0);
        let _ = decode(&[MAGIC, &bytes].concat(), find);
        let _ = decode(&envelope("v1", "Pod", &bytes[..bytes.len().min(100)]), find);
    }
}
