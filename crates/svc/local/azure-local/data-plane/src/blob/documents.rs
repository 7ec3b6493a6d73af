//! The documents of an account.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use aro_base::Timestamp;
use aro_store::{Container, DocId, DocKey, Kind, Names, PartitionKey};
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::BlobError;

pub(super) const BLOB: Container = Container::new("Blob");
pub(super) const CONTAINER_KIND: Kind<ContainerRecord> = Kind::new("Blob/containers");
pub(super) const BLOB_KIND: Kind<BlobRecord> = Kind::new("Blob/blobs");
pub(super) const BLOCKS_KIND: Kind<BlocksRecord> = Kind::new("Blob/uncommittedBlocks");
pub(super) const CHUNK_KIND: Kind<ChunkRecord> = Kind::new("Blob/chunks").by_key_only();
pub(super) const GARBAGE_KIND: Kind<GarbageRecord> = Kind::new("Blob/garbage");
pub(super) const SERVICE_KIND: Kind<ServiceRecord> = Kind::new("Blob/services");

/// Bytes of one chunk: with base64 well below the largest document.
pub(super) const CHUNK: usize = 1 << 20;

/// Bytes of one blob.
pub(super) const LARGEST: u64 = 64 << 20;

/// Names are escaped in ids, which are limited.
const LONGEST_ENCODED: usize = 1800;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerRecord {
    pub name: String,
    pub etag: String,
    pub modified: Timestamp,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlobRecord {
    pub container: String,
    pub name: String,
    pub size: u64,
    pub etag: String,
    pub created: Timestamp,
    pub modified: Timestamp,
    pub properties: BlobProperties,
    pub metadata: BTreeMap<String, String>,
    /// All of its chunks, in order.
    pub blocks: Vec<Block>,
}

/// What a client says about the content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlobProperties {
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_disposition: Option<String>,
    pub content_md5: Option<String>,
    pub cache_control: Option<String>,
}

/// A block: a name (none for a blob that was put at once), and its chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block {
    /// Base64, as the client gave it.
    pub id: String,
    pub size: u64,
    pub chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub id: Uuid,
    pub size: u64,
}

/// Blocks that wait for a block list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlocksRecord {
    pub container: String,
    pub name: String,
    pub modified: Timestamp,
    pub blocks: Vec<Block>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ChunkRecord {
    /// Base64.
    pub data: String,
}

/// Chunks that no blob needs, or that are being written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GarbageRecord {
    pub chunks: Vec<Uuid>,
    /// They may be removed after this.
    pub after: Timestamp,
}

/// The service properties of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceRecord {
    pub website: bool,
    pub index_document: Option<String>,
    pub error_document: Option<String>,
}

pub(super) fn partition(account: &str) -> PartitionKey {
    PartitionKey::new(account)
}

/// Where a document is.
pub(super) struct Place {
    pub key: DocKey,
    pub names: Names,
}

fn place(account: &str, id: &str, resource_id: String) -> Place {
    let id = DocId::new(id);
    let key = DocKey { container: BLOB, partition: partition(account), id: id.clone() };
    Place { key, names: Names { id, resource_id } }
}

fn hashed(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().fold(String::with_capacity(64), |mut digits, byte| {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// A name in a form that keeps its case where case is not regarded, and nearly its order.
pub(super) fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' => {
                out.push('^');
                out.push(byte.to_ascii_lowercase() as char);
            }
            b'^' | 0..=0x1f | 0x7f.. => {
                let _ = write!(out, "^~{byte:02x}");
            }
            _ => out.push(byte as char),
        }
    }
    out
}

pub(super) fn container_place(account: &str, name: &str) -> Place {
    place(account, &format!("container-{name}"), format!("/containers/{name}"))
}

pub(super) fn blob_prefix(container: &str) -> String {
    format!("/blobs/{container}/")
}

pub(super) fn blob_place(account: &str, container: &str, name: &str) -> Place {
    let id = format!("blob-{}", hashed(&format!("{container}/{name}")));
    place(account, &id, format!("{}{}", blob_prefix(container), encoded(name)))
}

pub(super) fn blocks_prefix(container: &str) -> String {
    format!("/blocks/{container}/")
}

pub(super) fn blocks_place(account: &str, container: &str, name: &str) -> Place {
    let id = format!("blocks-{}", hashed(&format!("{container}/{name}")));
    place(account, &id, format!("{}{}", blocks_prefix(container), encoded(name)))
}

pub(super) fn chunk_place(account: &str, chunk: Uuid) -> Place {
    place(account, &format!("chunk-{chunk}"), format!("/chunks/{chunk}"))
}

pub(super) fn garbage_place(account: &str, id: Uuid) -> Place {
    place(account, &format!("garbage-{id}"), format!("/garbage/{id}"))
}

pub(super) fn service_place(account: &str) -> Place {
    place(account, "service", "/service".to_owned())
}

/// Checks the name of a container.
pub(super) fn check_container(name: &str) -> Result<(), BlobError> {
    let special = matches!(name, "$web" | "$root" | "$logs");
    let word = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let plain = (3..=63).contains(&name.len())
        && name.bytes().all(word)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if special || plain { Ok(()) } else { Err(BlobError::name()) }
}

/// Checks the name of a blob.
pub(super) fn check_blob(name: &str) -> Result<(), BlobError> {
    let length = name.chars().count();
    let fits = (1..=1024).contains(&length) && encoded(name).len() <= LONGEST_ENCODED;
    if fits && !name.contains('\0') { Ok(()) } else { Err(BlobError::name()) }
}

/// A new etag.
pub(super) fn etag() -> String {
    format!("\"0x{:016X}\"", Uuid::new_v4().as_u64_pair().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_only_are_different() {
        assert_ne!(encoded("A").to_ascii_lowercase(), encoded("a").to_ascii_lowercase());
        assert_ne!(encoded("^a"), encoded("A"));
        assert!(encoded("Ä\n").is_ascii());
    }

    #[test]
    fn container_names_follow_the_rules() {
        for good in ["abc", "$web", "a-1"] {
            assert!(check_container(good).is_ok(), "{good}");
        }
        for bad in ["ab", "Abc", "a--b", "-ab", "$x", "a_b", ""] {
            assert!(check_container(bad).is_err(), "{bad}");
        }
    }
}
