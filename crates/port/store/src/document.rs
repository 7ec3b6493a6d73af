//! Documents and what names them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{ETag, Timestamp, nesting};
use serde_json::value::RawValue;

use crate::adapter::fold;

/// A set of documents with its own change feed. Containers are declared by code, never by input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Container(&'static str);

impl Container {
    /// Declares a container.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name, as it appears in the database.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The unit of atomicity: a batch touches one partition. Kept lower-case so that ids compare as ARM does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey(Arc<str>);

impl PartitionKey {
    /// Makes a key, lower-casing it.
    pub fn new(text: &str) -> Self {
        Self(fold(text).into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a document inside its partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocId(Arc<str>);

impl DocId {
    /// Makes an id out of text; the caller is responsible for its form.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The full name of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocKey {
    /// The container it is in.
    pub container: Container,
    /// Its partition.
    pub partition: PartitionKey,
    /// Its id inside the partition.
    pub id: DocId,
}

impl fmt::Display for DocKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.container, self.partition.as_str(), self.id)
    }
}

/// The JSON body of a document, as stored. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(Arc<str>);

impl Raw {
    /// Serialises a value. What nests too deep to be read back is an error.
    pub fn of<T: serde::Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        // Most bodies are of this size; a buffer that grows from nothing is copied at every step.
        let mut text = Vec::with_capacity(4096);
        serde_json::to_writer(&mut text, value)?;
        let text = String::from_utf8(text).map_err(serde::ser::Error::custom)?;
        if nesting::is_text_deeper_than(text.as_bytes(), nesting::MAX_DEPTH) {
            let problem = format!("the document is nested deeper than {} levels", nesting::MAX_DEPTH);
            return Err(serde::ser::Error::custom(problem));
        }
        Ok(Self(text.into()))
    }

    /// Takes text that is already JSON; checks that it is.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(|raw| Self(Box::<str>::from(raw).into()))
    }

    /// Takes text that a store wrote and now reads back; it was checked on its way in. For adapters.
    pub fn stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Reads it as a type.
    pub fn to<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

/// A document about to be written.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// Its id inside the batch's partition.
    pub id: DocId,
    /// What kind of thing it is, e.g. `Microsoft.RedHatOpenShift/hcpOpenShiftClusters`; compared without case.
    pub resource_type: String,
    /// The resource id that prefix queries look at; compared without case, kept as given. Without one (empty) the
    /// document is found by its key only, never by a query, and is cheaper to write.
    pub resource_id: String,
    /// How long it lives after this write; `None` is for ever.
    pub ttl: Option<Duration>,
    /// Its body.
    pub body: Raw,
}

/// A document as read.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its full name.
    pub key: DocKey,
    /// What kind of thing it is, as written.
    pub resource_type: String,
    /// Its resource id, as written.
    pub resource_id: String,
    /// Changes with every write.
    pub etag: ETag,
    /// Grows with every write of this key, also across delete and re-create: of two deliveries of one key the one
    /// with the greater version is the newer.
    pub version: u64,
    /// When it was last written.
    pub modified: Timestamp,
    /// When it will expire.
    pub expires: Option<Timestamp>,
    /// Its body.
    pub body: Raw,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_too_deep_to_be_read_back_is_refused_at_the_write() {
        let nested =
            |levels: usize| (0..levels).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let deepest = Raw::of(&nested(nesting::MAX_DEPTH)).unwrap();
        assert!(deepest.to::<serde_json::Value>().is_ok());
        let problem = Raw::of(&nested(nesting::MAX_DEPTH + 1)).unwrap_err();
        assert!(problem.to_string().contains("nested deeper than"), "{problem}");
    }
}
