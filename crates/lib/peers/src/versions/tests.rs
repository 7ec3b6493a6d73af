use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::json;

use super::*;
use crate::ClustersServiceOptions;
use crate::transport::{Transport, TransportError};

fn offered(version: &str, group: &str, enabled: bool) -> Offered {
    Offered { release: Release::parse(version).unwrap(), channel_group: group.to_owned(), enabled }
}

#[test]
fn stable_gets_the_newest_but_one_and_other_groups_the_newest() {
    let catalogue = Catalogue::new(vec![
        offered("4.20.9", "stable", true),
        offered("4.20.10", "stable", true),
        offered("4.20.11", "stable", true),
        offered("4.20.12", "stable", false),
        offered("4.20.12", "fast", true),
        offered("4.20.11", "fast", true),
        offered("4.21.0", "stable", true),
    ]);
    for (group, line, selected) in [
        ("stable", (4, 20), Some("4.20.10")),
        ("fast", (4, 20), Some("4.20.12")),
        ("stable", (4, 21), Some("4.21.0")),
        ("fast", (4, 21), None),
        ("stable", (4, 23), None),
    ] {
        let found = catalogue.select(group, Line::new(line.0, line.1)).map(|release| release.to_string());
        assert_eq!(found.as_deref(), selected, "{group} {line:?}");
    }
}

/// A Clusters Service with two releases, which can be away.
#[derive(Default)]
struct Fake {
    away: AtomicBool,
    reads: AtomicUsize,
}

#[async_trait]
impl Transport for Fake {
    async fn send(&self, _: Request<Bytes>, within: Duration) -> Result<Response<Bytes>, TransportError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.away.load(Ordering::Relaxed) {
            return Err(TransportError::Late { host: "fake".to_owned(), within });
        }
        let item = |raw: &str| json!({"raw_id": raw, "channel_group": "stable", "enabled": true});
        let body = json!({"kind": "VersionList", "page": 1, "size": 2, "total": 2, "items": [item("4.20.8"), item("4.20.9")]});
        Ok(Response::new(Bytes::from(body.to_string())))
    }
}

#[tokio::test(start_paused = true)]
async fn catalogue_is_served_stale_for_a_while_when_clusters_service_is_away() {
    let fake = Arc::new(Fake::default());
    let options = ClustersServiceOptions { address: "fake:1".to_owned(), deadline: DEADLINE };
    let versions = Versions::new(&ClustersService::over(fake.clone(), &options));
    assert_eq!(versions.get().await.unwrap().releases().len(), 2);
    assert_eq!(versions.get().await.unwrap().releases().len(), 2);
    assert_eq!(fake.reads.load(Ordering::Relaxed), 1, "fresh");

    fake.away.store(true, Ordering::Relaxed);
    tokio::time::advance(FRESH).await;
    assert!(versions.get().await.is_ok());
    assert!(versions.get().await.is_ok());
    assert_eq!(fake.reads.load(Ordering::Relaxed), 2, "a peer that just failed is left alone");

    tokio::time::advance(STALE).await;
    assert!(versions.get().await.is_err(), "too old");
    fake.away.store(false, Ordering::Relaxed);
    assert!(versions.get().await.is_ok());
}
