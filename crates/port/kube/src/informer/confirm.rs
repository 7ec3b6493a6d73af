//! Looks up objects that were written while a list was under way and are not on it.
//!
//! The list may have been served before the write: then the watch delivers the object. Or the object was written and
//! deleted before the list was served: then no event will ever name it, and it would stay in the cache for good. An object
//! that the API server still has is deleted after the list, so the watch delivers that.

use std::sync::Arc;

use aro_base::chain;
use kube::ResourceExt as _;
use kube::core::Request;
use kube::core::params::GetParams;

use super::run::BACKOFF;
use super::{Informer, Kept, ObjectKey};

/// Removes those that are gone, and calls the subscribers. Failures are retried.
pub(super) async fn confirm<K: Kept>(
    informer: &Informer<K>,
    client: &kube::Client,
    doubtful: Vec<(ObjectKey, Arc<K>)>,
) {
    for (key, object) in doubtful {
        let mut attempts = BACKOFF.attempts();
        let exists = loop {
            match exists(informer, client, &key, &object).await {
                Ok(exists) => break exists,
                Err(error) => {
                    tracing::debug!(kind = %informer.kind, object = %key, error = %chain(&error), "lookup failed; retrying");
                    let Some(delay) = attempts.next() else { return };
                    tokio::time::sleep(delay).await;
                }
            }
        };
        if !exists && let Some(change) = informer.cache.confirm_gone(&key, &object) {
            informer.notify(&change);
        }
    }
}

/// Whether the API server has this very object.
async fn exists<K: Kept>(
    informer: &Informer<K>,
    client: &kube::Client,
    key: &ObjectKey,
    object: &K,
) -> Result<bool, kube::Error> {
    let namespace = Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let request = Request::new(K::url_path(&informer.resource, namespace));
    let request = request.get(&key.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request::<K>(request).await {
        Ok(found) => Ok(found.uid() == object.uid()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}
