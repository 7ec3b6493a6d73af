//! Blocks: a blob put in parts, made of a list of them.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;

use super::blobs::{known, written};
use super::conditions;
use super::documents::{BlobRecord, Block, BlocksRecord, LARGEST, etag};
use super::error::BlobError;
use super::{Answer, Call, empty, properties, respond, xml};

/// With one chunk each these are far more than a blob may hold.
const MOST_BLOCKS: usize = 2000;

fn block_id(call: &Call<'_>) -> Result<String, BlobError> {
    let id = call.head.parameter("blockid").ok_or_else(|| BlobError::query("blockid"))?;
    let bytes = STANDARD.decode(id).map_err(|_| BlobError::query("blockid"))?;
    if bytes.is_empty() || bytes.len() > 64 { Err(BlobError::query("blockid")) } else { Ok(id.to_owned()) }
}

pub(super) async fn put(call: &Call<'_>, container: &str, name: &str, body: &[u8]) -> Answer {
    let id = block_id(call)?;
    if body.is_empty() {
        return Err(BlobError::header("content-length"));
    }
    let writer = call.store.writer(call.account).await?;
    call.store.get_container(call.account, container).await?;
    let old = call.store.find_blocks(call.account, container, name).await?;
    let mut record = match &old {
        Some(old) => old.value.clone(),
        None => BlocksRecord {
            container: container.to_owned(),
            name: name.to_owned(),
            modified: call.now,
            blocks: Vec::new(),
        },
    };
    record.modified = call.now;
    // All ids of a blob have one length.
    if record.blocks.iter().any(|block| block.id.len() != id.len()) {
        return Err(BlobError::block_id());
    }
    let position = record.blocks.iter().position(|block| block.id == id);
    let unused: Vec<Block> = position.map(|position| record.blocks.remove(position)).into_iter().collect();
    let total: u64 = record.blocks.iter().map(|block| block.size).sum();
    if record.blocks.len() >= MOST_BLOCKS || total + body.len() as u64 > LARGEST {
        return Err(BlobError::too_large());
    }
    let (chunks, recorded) = writer.write_chunks(body).await?;
    record.blocks.push(Block { id, size: body.len() as u64, chunks });
    let mut ops = vec![writer.put_blocks(old, record)?];
    ops.extend(recorded);
    writer.commit_reserved(ops, &unused, body.len()).await?;
    Ok(empty(StatusCode::CREATED))
}

/// Where the block of a list's entry is looked for.
fn chosen<'a>(kind: &str, id: &str, waiting: &'a [Block], committed: &'a [Block]) -> Option<&'a Block> {
    // A blob that was put at once is a block without a name.
    let find = |blocks: &'a [Block]| blocks.iter().find(|block| block.id == id && !id.is_empty());
    match kind {
        "BlockList/Uncommitted" => find(waiting),
        "BlockList/Committed" => find(committed),
        "BlockList/Latest" => find(waiting).or_else(|| find(committed)),
        _ => None,
    }
}

pub(super) async fn commit(call: &Call<'_>, container: &str, name: &str, body: &[u8]) -> Answer {
    let list = xml::leaves(body).ok_or_else(BlobError::document)?;
    // An empty list is its own leaf.
    let list: Vec<(String, String)> = list.into_iter().filter(|(path, _)| path != "BlockList").collect();
    if list.iter().any(|(path, _)| !path.starts_with("BlockList/")) {
        return Err(BlobError::document());
    }
    let metadata = properties::metadata(call.head)?;
    let writer = call.store.writer(call.account).await?;
    call.store.get_container(call.account, container).await?;
    let old = call.store.find_blob(call.account, container, name).await?;
    conditions::check_write(call.head, old.as_ref().map(known))?;
    let waiting = call.store.find_blocks(call.account, container, name).await?;
    let waiting_blocks = waiting.as_ref().map(|waiting| waiting.value.blocks.clone()).unwrap_or_default();
    let committed = old.as_ref().map(|old| old.value.blocks.clone()).unwrap_or_default();
    let mut blocks = Vec::with_capacity(list.len());
    let mut used = HashSet::new();
    for (kind, id) in &list {
        let block = chosen(kind, id, &waiting_blocks, &committed).ok_or_else(BlobError::block_list)?;
        // Chunks belong to one block of one blob.
        if !used.insert(block.chunks.first().map(|chunk| chunk.id)) {
            return Err(BlobError::block_list());
        }
        blocks.push(block.clone());
    }
    let size = blocks.iter().map(|block| block.size).sum();
    if size > LARGEST {
        return Err(BlobError::too_large());
    }
    let is_used = |block: &Block| used.contains(&block.chunks.first().map(|chunk| chunk.id));
    let unused: Vec<Block> =
        waiting_blocks.iter().chain(&committed).filter(|block| !is_used(block)).cloned().collect();
    let blob = BlobRecord {
        container: container.to_owned(),
        name: name.to_owned(),
        size,
        etag: etag(),
        created: old.as_ref().map_or(call.now, |old| old.value.created),
        modified: call.now,
        // The request's own content type is that of the list.
        properties: properties::of_request(call.head, false),
        metadata,
        blocks,
    };
    let mut ops = vec![writer.put_blob(old, blob.clone())?];
    ops.extend(waiting.as_ref().map(|waiting| writer.delete_blocks(waiting)));
    writer.commit(ops, &unused).await?;
    Ok(written(StatusCode::CREATED, &blob))
}

pub(super) async fn list(call: &Call<'_>, container: &str, name: &str) -> Answer {
    let kind = call.head.parameter("blocklisttype").unwrap_or("committed").to_ascii_lowercase();
    let blob = call.store.find_blob(call.account, container, name).await?;
    let waiting = call.store.find_blocks(call.account, container, name).await?;
    if blob.is_none() && waiting.is_none() {
        call.store.get_container(call.account, container).await?;
        return Err(BlobError::no_blob());
    }
    let shown = |element: &str, blocks: &[Block]| {
        let mut items = String::new();
        for block in blocks.iter().filter(|block| !block.id.is_empty()) {
            items.push_str("<Block>");
            items.push_str(&xml::element("Name", &block.id));
            items.push_str(&xml::element("Size", &block.size.to_string()));
            items.push_str("</Block>");
        }
        format!("<{element}>{items}</{element}>")
    };
    let committed = blob.as_ref().map(|blob| blob.value.blocks.as_slice()).unwrap_or_default();
    let uncommitted = waiting.as_ref().map(|waiting| waiting.value.blocks.as_slice()).unwrap_or_default();
    let mut text = format!("{}<BlockList>", xml::DECLARATION);
    if matches!(kind.as_str(), "committed" | "all") {
        text.push_str(&shown("CommittedBlocks", committed));
    }
    if matches!(kind.as_str(), "uncommitted" | "all") {
        text.push_str(&shown("UncommittedBlocks", uncommitted));
    }
    text.push_str("</BlockList>");
    let mut response = respond::document(StatusCode::OK, text);
    if let Some(blob) = &blob {
        respond::add_state(&mut response, &blob.value.etag, blob.value.modified);
        respond::insert(
            &mut response,
            http::HeaderName::from_static("x-ms-blob-content-length"),
            &blob.value.size.to_string(),
        );
    }
    Ok(response)
}
