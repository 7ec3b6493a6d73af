//! Bodies that were rendered before.
//!
//! A body is a function of the stored document and the api-version, and an etag names one state of a document for ever.
//! So an entry keyed by both is never stale and needs no invalidation; what is no longer asked for falls out.

use aro_arm::hcp::version::ApiVersion;
use aro_base::ETag;
use aro_store::{DocId, Document};
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    document: DocId,
    etag: ETag,
    version: ApiVersion,
}

#[derive(Debug, Clone)]
struct BySize;

impl Weighter<Key, Bytes> for BySize {
    fn weight(&self, _: &Key, body: &Bytes) -> u64 {
        body.len() as u64 + 128
    }
}

/// Rendered bodies, bounded by their size.
#[derive(Debug)]
pub struct Rendered(Cache<Key, Bytes, BySize>);

/// What one body is guessed to weigh, for sizing the table.
const USUAL_BODY: u64 = 8 * 1024;

impl Rendered {
    /// Holds at most this many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(Cache::with_weighter(usize::try_from(bytes / USUAL_BODY).unwrap_or(1), bytes, BySize))
    }

    /// The body of a document in a version, rendered now if it was not before.
    pub fn body<E>(
        &self,
        document: &Document,
        version: ApiVersion,
        render: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let key = Key { document: document.key.id.clone(), etag: document.etag.clone(), version };
        if let Some(body) = self.0.get(&key) {
            return Ok(body);
        }
        let body = Bytes::from(render()?);
        self.0.insert(key, body.clone());
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use aro_rp_store::key_of;
    use aro_store::Raw;

    use super::*;

    fn document(etag: &str) -> Document {
        Document {
            key: key_of(&aro_arm::ResourceId::of_subscription("s")),
            resource_type: "t".into(),
            resource_id: "/subscriptions/s".into(),
            etag: ETag::new(etag),
            version: 1,
            modified: aro_base::Timestamp::UNIX_EPOCH,
            expires: None,
            body: Raw::of(&1).unwrap(),
        }
    }

    #[test]
    fn a_body_is_rendered_once_per_state_and_version() {
        let rendered = Rendered::new(1 << 20);
        let body = |etag: &str, version, text: &str| {
            let render = || Ok::<_, Infallible>(text.as_bytes().to_vec());
            rendered.body(&document(etag), version, render).unwrap()
        };
        assert_eq!(body("1", ApiVersion::NEWEST, "a"), "a");
        assert_eq!(body("1", ApiVersion::NEWEST, "b"), "a", "known");
        assert_eq!(body("1", ApiVersion::OLDEST, "c"), "c", "another version");
        assert_eq!(body("2", ApiVersion::NEWEST, "d"), "d", "another state");
    }
}
