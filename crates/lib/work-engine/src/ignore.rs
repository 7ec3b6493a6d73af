//! Members of a manifest that are left as they are found.
//!
//! Leaving a member out would not do: applying without what one set before takes it away. So the value that is there is
//! what is applied, and the member does not count when the object is compared with its manifest.

use std::fmt::Write as _;

use aro_crds::work::v1::{IgnoreField, IgnoreFieldCondition};
use aro_kube_crd::JsonPath;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;
use crate::live::Live;

/// Where an object says which manifest it was made from.
pub(crate) const HASH_ANNOTATION: &str = "open-cluster-management.io/config-spec-hash";

/// Members by name, from the root.
type Path = Vec<String>;

/// Which members are left alone, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ignored {
    /// As soon as the object is there.
    present: Vec<Path>,
    /// As long as the manifest is the one the object was made from.
    changed: Vec<Path>,
}

/// Reads settings. What cannot be understood is an error: applying would overwrite what was to be left alone.
pub(crate) fn read(fields: &[IgnoreField]) -> Result<Ignored, Failure> {
    let mut ignored = Ignored::default();
    for field in fields {
        if let Some(expression) = field.jq_path_expressions.first() {
            let text = format!(
                "ignoreFields: jq expressions are not supported, use jsonPaths or jsonPointers: {expression}"
            );
            return Err(Failure::IgnoreFields(text));
        }
        let mut paths = Vec::new();
        for path in &field.json_paths {
            paths.push(of_json_path(path)?);
        }
        for pointer in &field.json_pointers {
            paths.push(of_pointer(pointer)?);
        }
        match field.condition {
            IgnoreFieldCondition::OnSpokePresent => ignored.present.extend(paths),
            IgnoreFieldCondition::OnSpokeChange => ignored.changed.extend(paths),
        }
    }
    Ok(ignored)
}

fn of_json_path(source: &str) -> Result<Path, Failure> {
    let bare = source.trim();
    let bare = bare.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(bare);
    let parsed = JsonPath::parse(bare);
    let names = parsed.as_ref().and_then(JsonPath::names).filter(|names| !names.is_empty());
    let names = names.ok_or_else(|| {
        Failure::IgnoreFields(format!("ignoreFields: {source} is not a JSON path of plain member names"))
    })?;
    Ok(names.into_iter().map(str::to_owned).collect())
}

fn of_pointer(source: &str) -> Result<Path, Failure> {
    let wrong = || Failure::IgnoreFields(format!("ignoreFields: {source} is not a JSON pointer to a member"));
    let rest = source.strip_prefix('/').ok_or_else(wrong)?;
    Ok(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
}

impl Ignored {
    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_empty() && self.changed.is_empty()
    }

    /// Whether the object has to say which manifest it was made from.
    pub(crate) fn needs_hash(&self) -> bool {
        !self.changed.is_empty()
    }

    fn paths<'a>(&'a self, manifest: &Value, live: &Live) -> impl Iterator<Item = &'a Path> + use<'a> {
        let made_from = live.value()["metadata"]["annotations"][HASH_ANNOTATION].as_str();
        let unchanged = self.needs_hash() && made_from == Some(hash(manifest).as_str());
        let changed = if unchanged { self.changed.as_slice() } else { &[] };
        self.present.iter().chain(changed)
    }

    /// The manifest with the members that are left alone as they are found.
    pub(crate) fn fill(&self, manifest: &Value, live: &Live) -> Value {
        let mut filled = manifest.clone();
        for path in self.paths(manifest, live) {
            match path.iter().try_fold(live.value(), |value, name| value.get(name)) {
                Some(found) => put(&mut filled, path, found.clone()),
                None => take(&mut filled, path),
            }
        }
        filled
    }

    /// The manifest without the members that are left alone.
    pub(crate) fn strip(&self, manifest: &Value, live: &Live) -> Value {
        let mut stripped = manifest.clone();
        for path in self.paths(manifest, live) {
            take(&mut stripped, path);
        }
        stripped
    }
}

/// Which manifest.
pub(crate) fn hash(manifest: &Value) -> String {
    let digest = Sha256::digest(manifest.to_string());
    digest.iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn put(root: &mut Value, path: &[String], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = root;
    for name in parents {
        let Value::Object(members) = at else { return };
        at = members.entry(name).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    if let Value::Object(members) = at {
        members.insert(last.clone(), value);
    }
}

fn take(root: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = root;
    for name in parents {
        let Some(next) = at.get_mut(name) else { return };
        at = next;
    }
    if let Value::Object(members) = at {
        members.remove(last);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(condition: IgnoreFieldCondition, paths: &[&str], pointers: &[&str]) -> IgnoreField {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        IgnoreField {
            condition,
            jq_path_expressions: Vec::new(),
            json_paths: owned(paths),
            json_pointers: owned(pointers),
        }
    }

    #[test]
    fn members_are_left_as_found_once_the_object_is_there() {
        let fields = [field(
            IgnoreFieldCondition::OnSpokePresent,
            &[".spec.replicas", ".spec.gone"],
            &["/metadata/annotations/a~1b"],
        )];
        let ignored = read(&fields).unwrap();
        let manifest = json!({"metadata": {"name": "x"}, "spec": {"replicas": 1, "gone": 2, "image": "i"}});
        let live =
            Live::new(json!({"metadata": {"annotations": {"a/b": "theirs"}}, "spec": {"replicas": 5}}));
        assert_eq!(
            ignored.fill(&manifest, &live),
            json!({"metadata": {"name": "x", "annotations": {"a/b": "theirs"}}, "spec": {"replicas": 5, "image": "i"}})
        );
        assert_eq!(
            ignored.strip(&manifest, &live),
            json!({"metadata": {"name": "x"}, "spec": {"image": "i"}})
        );
    }

    #[test]
    fn changes_there_stay_until_the_manifest_changes() {
        let ignored = read(&[field(IgnoreFieldCondition::OnSpokeChange, &[".spec.replicas"], &[])]).unwrap();
        let manifest = json!({"spec": {"replicas": 1}});
        let live = |made_from: &str| {
            Live::new(
                json!({"metadata": {"annotations": {HASH_ANNOTATION: made_from}}, "spec": {"replicas": 5}}),
            )
        };
        assert_eq!(ignored.fill(&manifest, &live(&hash(&manifest)))["spec"]["replicas"], 5);
        assert_eq!(ignored.fill(&manifest, &live("another"))["spec"]["replicas"], 1);
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for field in [
            field(IgnoreFieldCondition::OnSpokePresent, &[".spec.list[0]"], &[]),
            field(IgnoreFieldCondition::OnSpokePresent, &[""], &[]),
            field(IgnoreFieldCondition::OnSpokePresent, &[], &["spec"]),
            IgnoreField { jq_path_expressions: vec![".spec".to_owned()], ..IgnoreField::default() },
        ] {
            assert!(matches!(read(std::slice::from_ref(&field)), Err(Failure::IgnoreFields(_))), "{field:?}");
        }
    }
}
