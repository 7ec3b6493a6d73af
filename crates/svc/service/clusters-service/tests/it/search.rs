//! Searches on the running role.

use serde_json::Value;

use crate::region::{ARO, Region, cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_noop_cluster_is_found_while_it_lives_and_gone_with_all_its_documents() {
    let region = Region::noop().await;
    let (status, created) = region.send("POST", &format!("{ARO}/clusters"), &cluster("one", "rg")).await;
    assert_eq!(status, 202, "{created}");
    let href = created["href"].as_str().expect("an address").to_owned();
    let by_name = format!("{ARO}/clusters?search=name%20%3D%20%27one%27");
    assert_eq!(region.send("GET", &by_name, &Value::Null).await.1["total"], 1);
    assert_eq!(region.send("DELETE", &href, &Value::Null).await.0, 202);
    let mut cursor = region.send("GET", "/api/aro/v1/events", &Value::Null).await.1["cursor"].clone();
    // Each answer of the feed is a change; the deletion is among them, or happened before.
    loop {
        if region.send("GET", &href, &Value::Null).await.0 == 404 {
            break;
        }
        let after = cursor.as_str().expect("a cursor").to_owned();
        let path = format!("/api/aro/v1/events?timeout=5&after={after}");
        cursor = region.send("GET", &path, &Value::Null).await.1["cursor"].clone();
    }
    assert_eq!(region.send("GET", &by_name, &Value::Null).await.1["total"], 0);
    let (status, again) = region.send("POST", &format!("{ARO}/clusters"), &cluster("one", "rg")).await;
    assert_eq!(status, 202, "nothing of it is left that would conflict: {again}");
    region.stop().await;
}
