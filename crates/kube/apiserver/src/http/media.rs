//! What a client wants to get, and what it says it sent.

/// The shape of an answer about objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Object,
    Table,
    /// `PartialObjectMetadata` or its list.
    Metadata,
}

/// What the `Accept` header allows, best first among what we can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    pub shape: Shape,
    pub yaml: bool,
}

/// Media types that resources are read and shown in, as errors list them.
pub const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Whether any media type of the header is one that built-in resources have, whatever it is asked to hold.
pub fn names_known_type(header: Option<&str>) -> bool {
    header.unwrap_or_default().split(',').any(|range| {
        let media = range.split(';').next().unwrap_or_default().trim();
        [
            "*/*",
            "application/*",
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ]
        .contains(&media)
    })
}

/// Reads `Accept`. `None`: nothing in it is possible.
pub fn accepted(header: Option<&str>) -> Option<Accepted> {
    let plain = Accepted { shape: Shape::Object, yaml: false };
    let Some(header) = header.filter(|header| !header.trim().is_empty()) else { return Some(plain) };
    header.split(',').find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next()?;
        let mut shape = Shape::Object;
        let mut known = true;
        for part in parts {
            match part.split_once('=') {
                Some(("as", "Table")) => shape = Shape::Table,
                Some(("as", "PartialObjectMetadata" | "PartialObjectMetadataList")) => {
                    shape = Shape::Metadata;
                }
                Some(("as", "APIGroupDiscoveryList")) => known = false,
                Some(("v", version)) if version != "v1" => known = false,
                Some(("g", group)) if group != "meta.k8s.io" => known = false,
                _ => {}
            }
        }
        match media {
            "application/json" | "*/*" | "application/*" if known => Some(Accepted { shape, yaml: false }),
            "application/yaml" if known && shape == Shape::Object => Some(Accepted { shape, yaml: true }),
            _ => None,
        }
    })
}

/// Whether aggregated discovery is wanted, before plain documents.
pub fn wants_aggregated(header: Option<&str>) -> bool {
    for range in header.unwrap_or_default().split(',') {
        if range.contains("as=APIGroupDiscoveryList")
            && range.contains("v=v2")
            && !range.contains("v=v2beta1")
        {
            return true;
        }
        if matches!(range.trim(), "application/json" | "*/*") {
            return false;
        }
    }
    false
}

/// A `Content-Type` without its parameters, in lower case.
pub fn content_type(header: Option<&str>) -> String {
    header.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_gets_its_table_and_go_clients_their_json() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accepted(Some(kubectl)).unwrap().shape, Shape::Table);
        let go = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accepted(Some(go)).unwrap().shape, Shape::Object);
        assert_eq!(accepted(Some("application/vnd.kubernetes.protobuf")), None);
        assert!(accepted(None).is_some());
    }

    #[test]
    fn aggregated_discovery_is_chosen_by_order() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert!(wants_aggregated(Some(kubectl)));
        assert!(!wants_aggregated(Some("application/json")));
        assert!(!wants_aggregated(None));
    }
}
