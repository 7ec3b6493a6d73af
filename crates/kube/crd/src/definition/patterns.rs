//! The patterns of a definition together: each is compiled when an object first meets it, and stays in memory.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Errors;
use crate::go_regex;

/// The parts of all patterns, seven times those of OpenShift's largest single pattern: some 80 MiB when all are in use.
const MAX_COST: u64 = 4_000_000;

pub(super) fn budget(spec: &Value, errors: &mut Errors) {
    let mut found = BTreeSet::new();
    collect(spec, &mut found);
    let cost = found.into_iter().map(go_regex::compile_cost).fold(0, u64::saturating_add);
    if cost > MAX_COST {
        errors.forbidden("spec.versions", "the patterns of all schemas together are too large");
    }
}

/// A property may have that name, but then it is an object.
fn collect<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "pattern" => drop(found.insert(text)),
                    member => collect(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_large_patterns_together_are_refused() {
        let schema = |count: usize| {
            let property = |n: usize| {
                (
                    format!("p{n}"),
                    json!({"type": "string", "pattern": format!("{n}[a-z]{{1,1000}}{{1,150}}")}),
                )
            };
            let properties: serde_json::Map<String, Value> = (0..count).map(property).collect();
            json!({"versions": [{"schema": {"openAPIV3Schema": {"properties": properties}}}]})
        };
        for (count, refused) in [(4, 0), (40, 1)] {
            let mut errors = Errors::default();
            budget(&schema(count), &mut errors);
            assert_eq!(errors.0.len(), refused, "{count}");
        }
    }
}
