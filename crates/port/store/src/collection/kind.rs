//! A kind of document: its name, its schema version, and the way between a Rust value and a stored body.
//!
//! A body of schema version 1 carries no version. From version 2 on it has the member `schemaVersion`, and
//! [`Kind::upgraded_by`] names the function that brings older bodies up to date when they are read. A body of a newer version
//! than this process knows is refused instead of being read in part: a later write would drop the members it does not
//! know.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CollectionError, DecodeError, Names, Typed};
use crate::{Document, NewDocument, Raw};

/// The member that holds the schema version of a body.
const SCHEMA_VERSION: &str = "\"schemaVersion\"";

/// How documents of one kind are written and read.
pub struct Kind<T> {
    resource_type: &'static str,
    schema: u32,
    upgrade: fn(u32, &mut Value),
    ttl: Option<Duration>,
    by_key_only: bool,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Kind<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Kind<T> {}

impl<T> fmt::Debug for Kind<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind")
            .field("resource_type", &self.resource_type)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl<T> Kind<T> {
    /// Documents of this resource type, in schema version 1, without expiry.
    pub const fn new(resource_type: &'static str) -> Self {
        Self {
            resource_type,
            schema: 1,
            upgrade: |_, _| {},
            ttl: None,
            by_key_only: false,
            value: PhantomData,
        }
    }

    /// Sets the schema version that is written. `upgrade(n, body)` changes a body of version `n` into one of `n + 1`; it is
    /// called for every step between what is stored and this version.
    pub const fn upgraded_by(mut self, schema: u32, upgrade: fn(u32, &mut Value)) -> Self {
        self.schema = schema;
        self.upgrade = upgrade;
        self
    }

    /// Documents expire this long after their last write.
    pub const fn expiring(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Documents are found by their key only, never by a query, and are cheaper to write.
    pub const fn by_key_only(mut self) -> Self {
        self.by_key_only = true;
        self
    }

    /// The resource type that its documents carry.
    pub const fn resource_type(&self) -> &'static str {
        self.resource_type
    }
}

impl<T: Serialize + DeserializeOwned> Kind<T> {
    /// The document that holds a value.
    pub fn encode(&self, names: Names, value: &T) -> Result<NewDocument, CollectionError> {
        let body = match self.schema {
            1 => Raw::of(value),
            schema_version => Raw::of(&Versioned { schema_version, value }),
        };
        let body = body.map_err(|source| CollectionError::Encode { id: names.id.clone(), source })?;
        Ok(NewDocument {
            id: names.id,
            resource_type: self.resource_type.to_owned(),
            resource_id: if self.by_key_only { String::new() } else { names.resource_id },
            ttl: self.ttl,
            body,
        })
    }

    /// The value that a document holds.
    pub fn decode(&self, document: Document) -> Result<Typed<T>, CollectionError> {
        match self.decode_body(&document.body) {
            Ok(value) => Ok(Typed {
                value,
                key: document.key,
                resource_id: document.resource_id,
                etag: document.etag,
                version: document.version,
                modified: document.modified,
                expires: document.expires,
            }),
            Err(source) => Err(CollectionError::Decode { key: document.key, etag: document.etag, source }),
        }
    }

    fn decode_body(&self, body: &Raw) -> Result<T, DecodeError> {
        let stored = schema_version(body)?;
        if stored == self.schema {
            return Ok(body.to()?);
        }
        if stored > self.schema {
            return Err(DecodeError::Newer { stored, known: self.schema });
        }
        let mut value: Value = body.to()?;
        for version in stored..self.schema {
            (self.upgrade)(version, &mut value);
        }
        Ok(serde_json::from_value(value)?)
    }
}

#[derive(Serialize)]
struct Versioned<'a, T> {
    #[serde(rename = "schemaVersion")]
    schema_version: u32,
    #[serde(flatten)]
    value: &'a T,
}

/// The schema version of a body. Bodies are read all the time and most have none: the search for the name costs a fraction of
/// a parse.
fn schema_version(body: &Raw) -> Result<u32, DecodeError> {
    #[derive(Deserialize)]
    struct Only {
        #[serde(rename = "schemaVersion", default = "first")]
        schema_version: u32,
    }
    fn first() -> u32 {
        1
    }
    if !body.get().contains(SCHEMA_VERSION) {
        return Ok(1);
    }
    Ok(body.to::<Only>()?.schema_version)
}

#[cfg(test)]
mod tests {
    use aro_base::{ETag, Timestamp};
    use serde_json::json;

    use super::*;
    use crate::{Container, DocId, DocKey, PartitionKey};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Host {
        address: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }

    const FIRST: Kind<Host> = Kind::new("Test/hosts");
    const THIRD: Kind<Host> = FIRST.upgraded_by(3, |from, body| match from {
        1 => body["name"] = body["host"].take(),
        _ => body["address"] = body["name"].take(),
    });

    fn stored(body: &str) -> Document {
        Document {
            key: DocKey {
                container: Container::new("Tests"),
                partition: PartitionKey::new("p"),
                id: DocId::new("a"),
            },
            resource_type: "Test/hosts".to_owned(),
            resource_id: "/hosts/a".to_owned(),
            etag: ETag::new("1"),
            version: 1,
            modified: Timestamp::UNIX_EPOCH,
            expires: None,
            body: Raw::stored(body),
        }
    }

    fn names() -> Names {
        Names { id: DocId::new("a"), resource_id: "/hosts/a".to_owned() }
    }

    #[test]
    fn every_past_shape_is_upgraded_step_by_step_when_it_is_read() {
        for past in [
            r#"{"host":"h"}"#,
            r#"{"schemaVersion":1,"host":"h"}"#,
            r#"{"schemaVersion":2,"name":"h"}"#,
            r#"{"schemaVersion":3,"address":"h"}"#,
        ] {
            assert_eq!(THIRD.decode(stored(past)).unwrap().value.address, "h", "{past}");
        }
    }

    #[test]
    fn a_body_is_written_with_its_schema_version_except_the_first() {
        let host = Host { address: "h".to_owned(), note: None };
        assert_eq!(FIRST.encode(names(), &host).unwrap().body.get(), r#"{"address":"h"}"#);
        let body = THIRD.encode(names(), &host).unwrap().body;
        assert_eq!(body.to::<Value>().unwrap(), json!({"schemaVersion": 3, "address": "h"}));
        assert_eq!(THIRD.decode(stored(body.get())).unwrap().value, host);
    }

    #[test]
    fn a_body_of_a_newer_schema_version_is_refused() {
        let newer = FIRST.decode(stored(r#"{"schemaVersion":2,"address":"h"}"#));
        assert!(
            matches!(
                newer,
                Err(CollectionError::Decode { source: DecodeError::Newer { stored: 2, known: 1 }, .. })
            ),
            "{newer:?}"
        );
    }

    #[test]
    fn the_name_of_the_version_inside_a_value_is_not_a_version() {
        let host = Host { address: "\"schemaVersion\"".to_owned(), note: Some("schemaVersion".to_owned()) };
        let body = FIRST.encode(names(), &host).unwrap().body;
        assert_eq!(FIRST.decode(stored(body.get())).unwrap().value, host);
    }

    #[test]
    fn a_kind_decides_about_expiry_and_about_being_found_by_queries() {
        let host = Host { address: "h".to_owned(), note: None };
        let expiring = FIRST.expiring(Duration::from_secs(5)).encode(names(), &host).unwrap();
        assert_eq!((expiring.ttl, expiring.resource_id.as_str()), (Some(Duration::from_secs(5)), "/hosts/a"));
        assert_eq!(FIRST.by_key_only().encode(names(), &host).unwrap().resource_id, "");
    }
}
