//! What every manifest inherits: lints, version, and the versions of its dependencies.

use toml::{Table, Value};

const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Everything this manifest says that only the root may say.
pub fn violations(name: &str, manifest: &Table) -> Vec<String> {
    let mut found = Vec::new();
    if !inherits(manifest.get("lints")) {
        found.push(format!("{name}: add `[lints] workspace = true`"));
    }
    let package = manifest.get("package").and_then(Value::as_table);
    for key in INHERITED {
        if !package.is_some_and(|package| inherits(package.get(key))) {
            found.push(format!("{name}: write `{key}.workspace = true`"));
        }
    }
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let targets = targets.filter_map(|(_, target)| target.as_table());
    for place in std::iter::once(manifest).chain(targets) {
        let tables = TABLES.iter().filter_map(|table| place.get(*table)?.as_table());
        for (dependency, value) in tables.flatten() {
            if !inherits(Some(value)) {
                found.push(format!("{name}: the version of `{dependency}` belongs into the root manifest"));
            }
        }
    }
    found
}

fn inherits(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
        lints.workspace = true
        [package]
        name = 'x'
        version.workspace = true
        edition.workspace = true
        rust-version.workspace = true
        license.workspace = true
        publish.workspace = true
        [dependencies]
        serde.workspace = true
        [dev-dependencies]
        tokio = { workspace = true, features = ['test-util'] }
    ";

    fn check(text: &str) -> Vec<String> {
        violations("x", &text.parse().unwrap())
    }

    #[test]
    fn a_manifest_that_inherits_everything_passes() {
        assert_eq!(check(GOOD), Vec::<String>::new());
    }

    #[test]
    fn whatever_is_not_inherited_is_named() {
        let bad = GOOD
            .replace("lints.workspace = true", "")
            .replace("license.workspace = true", "license = 'MIT'")
            .replace("serde.workspace = true", "serde = '1'");
        let bad = format!("{bad}\n[target.'cfg(unix)'.dependencies]\nnix = {{ version = '0.31' }}\n");
        assert_eq!(
            check(&bad),
            [
                "x: add `[lints] workspace = true`",
                "x: write `license.workspace = true`",
                "x: the version of `serde` belongs into the root manifest",
                "x: the version of `nix` belongs into the root manifest",
            ]
        );
    }
}
