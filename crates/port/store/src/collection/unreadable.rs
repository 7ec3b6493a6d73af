//! The one policy for a document that cannot be decoded: count it every time, log it once per version, go on with the others.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aro_base::{ETag, chain};
use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::CollectionError;
use crate::DocKey;

/// How many versions of documents are remembered as logged. When there are more, logging starts over.
const REMEMBERED: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    container: &'static str,
    resource_type: &'static str,
}

/// Counts and logs documents that could not be decoded. One per process, shared by its collections. The default one counts
/// into no registry.
#[derive(Clone, Default)]
pub struct UnreadableDocuments {
    reads: Family<Labels, Counter>,
    logged: Arc<Mutex<HashSet<(DocKey, ETag)>>>,
}

impl UnreadableDocuments {
    /// Counts into a registry. Register once per process.
    pub fn new(metrics: &Metrics) -> Self {
        let report = Self::default();
        metrics.register(|registry| {
            registry.register(
                "aro_store_unreadable_documents",
                "Reads of documents that could not be decoded",
                report.reads.clone(),
            );
        });
        report
    }

    /// Records an error if it is about an unreadable document.
    pub(super) fn record(&self, resource_type: &'static str, error: &CollectionError) {
        let CollectionError::Decode { key, etag, .. } = error else { return };
        self.reads.get_or_create(&Labels { container: key.container.name(), resource_type }).inc();
        if self.is_first(key, etag) {
            tracing::error!(document = %key, resource_type, error = %chain(error), "document unreadable");
        }
    }

    /// How many reads found an unreadable document of this type.
    pub fn reads(&self, container: crate::Container, resource_type: &'static str) -> u64 {
        self.reads.get_or_create(&Labels { container: container.name(), resource_type }).get()
    }

    fn is_first(&self, key: &DocKey, etag: &ETag) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= REMEMBERED {
            logged.clear();
        }
        logged.insert((key.clone(), etag.clone()))
    }
}

impl fmt::Debug for UnreadableDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnreadableDocuments")
    }
}
