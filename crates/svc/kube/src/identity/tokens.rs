//! Tokens of service accounts.

use std::sync::Arc;

use aro_machinery::status::Status;

use crate::cluster::Cluster;
use crate::http::answer::{self, Answer};
use crate::rest::Call;

/// `POST serviceaccounts/x/token`
pub async fn request(call: Call) -> Result<Answer, Status> {
    let _ = call;
    Err(crate::rest::method_not_allowed())
}

pub fn openid_configuration(cluster: &Arc<Cluster>) -> Answer {
    let _ = cluster;
    answer::json(200, &serde_json::json!({}))
}

pub fn jwks(cluster: &Arc<Cluster>) -> Answer {
    let _ = cluster;
    answer::json(200, &serde_json::json!({"keys": []}))
}
