//! The resource types of the local cloud, one file per provider. A new type is a row in one of them.

mod authorization;
mod container_registry;
mod dns;
mod key_vault;
mod managed_identity;
mod network;
mod platform;
mod storage;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::spec::TypeSpec;

/// Every type with a document of its own.
pub fn all() -> impl Iterator<Item = &'static TypeSpec> {
    [
        network::TYPES,
        dns::TYPES,
        managed_identity::TYPES,
        authorization::TYPES,
        key_vault::TYPES,
        storage::TYPES,
        container_registry::TYPES,
        platform::TYPES,
    ]
    .into_iter()
    .flatten()
}

/// A type by its full name, in any case.
pub fn find(full: &str) -> Option<&'static TypeSpec> {
    static BY_NAME: LazyLock<HashMap<String, &'static TypeSpec>> =
        LazyLock::new(|| all().map(|spec| (spec.full.to_ascii_lowercase(), spec)).collect());
    BY_NAME.get(&full.to_ascii_lowercase()).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn full_names_follow_from_namespace_and_words_and_are_unique() {
        let mut seen = HashSet::new();
        for spec in all() {
            let words: Vec<&str> = spec.types.iter().map(|(word, _)| *word).collect();
            assert_eq!(spec.full, format!("{}/{}", spec.namespace, words.join("/")));
            assert!(seen.insert(spec.full.to_lowercase()), "{}", spec.full);
            assert!(!spec.versions.is_empty(), "{}", spec.full);
        }
    }

    #[test]
    fn references_and_children_name_types_that_exist() {
        let inline: HashSet<&str> = all().flat_map(|spec| spec.inline).map(|inline| inline.full).collect();
        for spec in all() {
            for reference in spec.references {
                let known = find(reference.target).is_some() || inline.contains(reference.target);
                assert!(known, "{} refers to {}", spec.full, reference.target);
            }
            for child in spec.inline {
                assert_eq!(child.full, format!("{}/{}", spec.full, child.member));
            }
        }
    }
}
