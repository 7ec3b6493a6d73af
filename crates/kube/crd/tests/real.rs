//! The definitions of HyperShift and Open Cluster Management compile, and all their rules are enforced.

mod support;

use aro_kube_crd::compile;
use aro_kube_crd::definition::admit;
use serde_json::Value;

#[test]
fn all_rules_of_real_definitions_are_enforced() {
    let mut unenforced = Vec::new();
    let definitions = support::definitions();
    for (file, crd) in support::real_definitions() {
        for version in crd.pointer("/spec/versions").and_then(Value::as_array).unwrap() {
            let name = version["name"].as_str().unwrap();
            let started = jiff::Zoned::now();
            let custom = compile(&crd, name, &definitions).unwrap();
            let took = jiff::Zoned::now().duration_since(&started);
            println!("{file} {name}: compiled in {took:?}");
            unenforced.extend(custom.unenforced().iter().cloned().map(|rule| (file.clone(), rule)));
        }
    }
    assert!(unenforced.is_empty(), "{unenforced:#?}");
}

#[test]
fn real_definitions_are_admitted() {
    for (file, mut crd) in support::real_definitions() {
        let errors = admit(&mut crd, None);
        assert!(errors.is_empty(), "{file}: {}", support::lines(&errors));
    }
}
