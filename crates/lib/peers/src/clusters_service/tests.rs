use std::sync::Arc;
use std::time::Duration;

use aro_ocm::ClusterId;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::transport::TransportError;

/// Answers requests in order, and keeps what it was asked.
#[derive(Default)]
struct Script {
    replies: Mutex<Vec<(u16, Value)>>,
    asked: Mutex<Vec<(String, String, http::HeaderMap)>>,
}

#[async_trait]
impl Transport for Script {
    async fn send(&self, request: Request<Bytes>, _: Duration) -> Result<Response<Bytes>, TransportError> {
        let uri = request.uri().path_and_query().unwrap().to_string();
        self.asked.lock().push((request.method().to_string(), uri, request.headers().clone()));
        let mut replies = self.replies.lock();
        if replies.is_empty() {
            return Err(TransportError::Invalid("no reply is scripted"));
        }
        let (status, body) = replies.remove(0);
        Ok(Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap())
    }
}

fn client(replies: Vec<(u16, Value)>) -> (ClustersService, Arc<Script>) {
    let script = Arc::new(Script { replies: Mutex::new(replies), asked: Mutex::default() });
    let options = ClustersServiceOptions {
        address: "clusters-service:8000".to_owned(),
        deadline: Duration::from_secs(2),
    };
    (ClustersService::over(script.clone(), &options), script)
}

#[tokio::test]
async fn a_list_is_read_page_by_page_until_its_total() {
    let page = |page: u64, ids: &[&str]| {
        let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        (200, json!({"kind": "ClusterList", "page": page, "size": items.len(), "total": 3, "items": items}))
    };
    let (client, script) = client(vec![page(1, &["a", "b"]), page(2, &["c"])]);
    let found = client.clusters(Some("azure.resource_name = 'x y'")).await.unwrap();
    assert_eq!(found.len(), 3);
    let asked = script.asked.lock();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        asked[1].1,
        "/api/aro_hcp/v1alpha1/clusters?page=2&size=100&search=azure.resource_name%20%3D%20%27x%20y%27"
    );
}

#[tokio::test]
async fn absent_objects_are_none_and_deleting_them_is_no_error() {
    let missing = || (404, json!({"kind": "Error", "id": "404", "reason": "not found"}));
    let (client, _) = client(vec![missing(), missing()]);
    let id = ClusterId::parse("c1").unwrap();
    assert_eq!(client.find_cluster(&id).await.unwrap(), None);
    assert!(!client.delete_cluster(&id).await.unwrap());
}

#[tokio::test]
async fn a_call_carries_the_context_of_its_request() {
    let (client, script) = client(vec![(200, json!({"kind": "EventList", "items": [], "cursor": "c9"}))]);
    let context = CallContext { correlation_id: Some("corr".to_owned()), ..CallContext::default() };
    let page = client.in_context(context).events_after("c 8", Duration::from_secs(90)).await.unwrap();
    assert_eq!(page.cursor, "c9");
    let asked = script.asked.lock();
    assert_eq!(asked[0].1, "/api/aro/v1/events?after=c%208&timeout=60");
    assert_eq!(asked[0].2["baggage"], "aro.correlation_id=corr");
}

#[tokio::test]
async fn a_reply_that_is_not_json_is_not_understood() {
    let (client, _) = client(vec![(200, json!("text"))]);
    let id = ClusterId::parse("c1").unwrap();
    assert!(matches!(client.find_cluster(&id).await, Err(CallError::Unreadable { .. })));
}
