//! Derived ids.

use uuid::Uuid;

/// The id of a work, derived from source, namespace and name as the original client derives it.
pub fn work_uid(source: &str, namespace: &str, name: &str) -> Uuid {
    let text = format!("{source}-manifestworks.work.open-cluster-management.io-{namespace}-{name}");
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_uid_matches_the_original_client() {
        let (namespace, name) =
            ("7ff1a8f4-8811-49b4-8c19-9271bc51975e", "e44ec579-9646-549a-b679-db8d19d6da37");
        let uid = work_uid("mw-client-example", namespace, name);
        assert_eq!(uid.to_string(), "55c61e54-a3f6-563d-9fec-b1fe297bdfdb");
    }
}
