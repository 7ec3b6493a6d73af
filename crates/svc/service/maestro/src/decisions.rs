//! What the server records for `aro why`: that a version of a bundle reached its consumer, and how long it took.
//!
//! Only bundles that belong to a hosted cluster are recorded. The delivery ledger holds the rest.

use aro_base::Timestamp;
use aro_bundle::Event;
use aro_decisions::{Entry, Outcome};
use serde_json::Value;

/// The label with the id of the hosted cluster in Clusters Service.
const CLUSTER: &str = "api.openshift.com/id";

/// The entry for the first status of a version; `None` for bundles of no hosted cluster.
pub(crate) fn delivered(event: &Event, published: Timestamp, now: Timestamp) -> Option<Entry> {
    let metadata = event.metadata.as_deref().filter(|text| text.contains(CLUSTER))?;
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let cluster = metadata["labels"][CLUSTER].as_str()?;
    let bundle = event.resource_id.as_deref()?;
    let text = |name: &str| metadata["annotations"][name].as_str().map(str::to_owned);
    Some(Entry {
        correlation_id: text("aro.dev/correlation-id"),
        subjects: vec![cluster.to_owned(), bundle.to_owned()],
        step: "deliver-bundle",
        outcome: Outcome::Done,
        detail: format!(
            "bundle {bundle} version {}: first status of {} {} ms after it was published",
            event.resource_version.unwrap_or_default(),
            event.cluster_name,
            now.duration_since(published).as_millis().max(0),
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aro_base::SignedDuration;
    use aro_bundle::{Action, EventType};

    use super::*;

    fn status(metadata: Option<&str>) -> Event {
        Event {
            id: "e".to_owned(),
            source: "mgmt-1-work-agent".to_owned(),
            kind: EventType::status(Action::Update),
            time: None,
            cluster_name: "mgmt-1".to_owned(),
            original_source: None,
            resource_id: Some("bundle-1".to_owned()),
            resource_version: Some(3),
            deletion_timestamp: None,
            sequence_id: None,
            status_hash: None,
            metadata: metadata.map(str::to_owned),
            log_tracing: None,
            others: BTreeMap::new(),
            data: bytes::Bytes::new(),
        }
    }

    #[test]
    fn a_bundle_of_a_hosted_cluster_is_recorded_under_the_clusters_id() {
        let published = Timestamp::UNIX_EPOCH;
        let now = published + SignedDuration::from_millis(40);
        let metadata =
            r#"{"labels":{"api.openshift.com/id":"2abc"},"annotations":{"aro.dev/correlation-id":"c"}}"#;
        let entry = delivered(&status(Some(metadata)), published, now).unwrap();
        assert_eq!(entry.subjects, ["2abc", "bundle-1"]);
        assert_eq!(entry.correlation_id.as_deref(), Some("c"));
        assert!(entry.detail.contains("version 3") && entry.detail.contains(" 40 ms "), "{}", entry.detail);
        assert!(delivered(&status(Some("{}")), published, now).is_none());
        assert!(delivered(&status(None), published, now).is_none());
    }
}
