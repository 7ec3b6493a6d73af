//! Writes to an account, one at a time.

use std::sync::Arc;

use aro_base::{SignedDuration, Timestamp};
use aro_store::{Batch, MAX_BATCH, Op, Page, StoreError, Typed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use super::documents::{
    BLOB, BlobRecord, Block, BlocksRecord, CHUNK, Chunk, ChunkRecord, ContainerRecord, GarbageRecord,
    ServiceRecord, blob_place, blob_prefix, blocks_place, blocks_prefix, chunk_place, container_place,
    garbage_place, partition, service_place,
};
use super::error::BlobError;
use super::store::{Account, BlobStore, chunks_of};

/// An upload that takes longer was interrupted.
const UPLOAD: SignedDuration = SignedDuration::from_hours(1);
/// Readers of replaced content have this long to finish.
const READERS: SignedDuration = SignedDuration::from_mins(5);

/// The right to write to an account.
pub(super) struct Writer<'a> {
    store: &'a BlobStore,
    account: &'a str,
    state: Arc<Account>,
    _turn: tokio::sync::OwnedMutexGuard<()>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        store: &'a BlobStore,
        account: &'a str,
        state: Arc<Account>,
        turn: tokio::sync::OwnedMutexGuard<()>,
    ) -> Self {
        Self { store, account, state, _turn: turn }
    }

    /// Writes bytes into chunks. They are garbage until a batch names them and removes the returned record.
    pub(super) async fn write_chunks(&self, body: &[u8]) -> Result<(Vec<Chunk>, Option<Op>), BlobError> {
        let inner = &self.store.0;
        self.state.reserve(body.len() as u64, inner.budget)?;
        let written = self.write_reserved(body).await;
        if written.is_err() {
            self.state.release(body.len() as u64);
        }
        written
    }

    async fn write_reserved(&self, body: &[u8]) -> Result<(Vec<Chunk>, Option<Op>), BlobError> {
        if body.is_empty() {
            return Ok((Vec::new(), None));
        }
        let inner = &self.store.0;
        let parts: Vec<(Uuid, &[u8])> = body.chunks(CHUNK).map(|part| (Uuid::now_v7(), part)).collect();
        let after = inner.clock.now().saturating_add(UPLOAD).unwrap_or(Timestamp::MAX);
        let place = garbage_place(self.account, Uuid::now_v7());
        let record = GarbageRecord { chunks: parts.iter().map(|(id, _)| *id).collect(), after };
        let create = inner.garbage.create(place.names, &record)?;
        let batch = Batch::new(BLOB, partition(self.account)).with(create);
        let etag = inner.store.write(batch).await?.into_iter().next().map(|written| written.etag);
        for (id, part) in &parts {
            let chunk = ChunkRecord { data: STANDARD.encode(part) };
            let create = inner.chunks.create(chunk_place(self.account, *id).names, &chunk)?;
            inner.store.write(Batch::new(BLOB, partition(self.account)).with(create)).await?;
        }
        let chunks = parts.iter().map(|(id, part)| Chunk { id: *id, size: part.len() as u64 }).collect();
        Ok((chunks, etag.map(|etag| Op::Delete(place.key.id, etag))))
    }

    /// As [`Self::commit`], after chunks of so many bytes were written. If it fails, they are not part of the account.
    pub(super) async fn commit_reserved(
        &self,
        ops: Vec<Op>,
        unused: &[Block],
        bytes: usize,
    ) -> Result<(), BlobError> {
        self.commit(ops, unused).await.inspect_err(|_| self.state.release(bytes as u64))
    }

    /// Writes one batch. Chunks that nothing names any more become garbage with it.
    pub(super) async fn commit(&self, mut ops: Vec<Op>, unused: &[Block]) -> Result<(), BlobError> {
        let inner = &self.store.0;
        let after = inner.clock.now().saturating_add(READERS).unwrap_or(Timestamp::MAX);
        ops.extend(self.store.garbage_op(self.account, chunks_of(unused), after)?);
        let batch = ops.into_iter().fold(Batch::new(BLOB, partition(self.account)), Batch::with);
        match inner.store.write(batch).await {
            Ok(_) => {}
            // Only another process could have written: the caller may try again.
            Err(StoreError::Conflict { .. }) => return Err(BlobError::unavailable()),
            Err(StoreError::Batch(_)) => return Err(BlobError::too_large()),
            Err(error) => return Err(error.into()),
        }
        self.state.release(unused.iter().map(|block| block.size).sum());
        Ok(())
    }

    pub(super) fn put_container(
        &self,
        old: Option<Typed<ContainerRecord>>,
        new: ContainerRecord,
    ) -> Result<Op, BlobError> {
        let containers = &self.store.0.containers;
        Ok(match old {
            Some(old) => containers.replace(&Typed { value: new, ..old })?,
            None => containers.create(container_place(self.account, &new.name).names, &new)?,
        })
    }

    pub(super) fn put_blob(&self, old: Option<Typed<BlobRecord>>, new: BlobRecord) -> Result<Op, BlobError> {
        let blobs = &self.store.0.blobs;
        Ok(match old {
            Some(old) => blobs.replace(&Typed { value: new, ..old })?,
            None => blobs.create(blob_place(self.account, &new.container, &new.name).names, &new)?,
        })
    }

    pub(super) fn put_blocks(
        &self,
        old: Option<Typed<BlocksRecord>>,
        new: BlocksRecord,
    ) -> Result<Op, BlobError> {
        let blocks = &self.store.0.blocks;
        Ok(match old {
            Some(old) => blocks.replace(&Typed { value: new, ..old })?,
            None => blocks.create(blocks_place(self.account, &new.container, &new.name).names, &new)?,
        })
    }

    pub(super) fn delete_blocks(&self, old: &Typed<BlocksRecord>) -> Op {
        self.store.0.blocks.delete(old)
    }

    pub(super) async fn put_service(&self, new: ServiceRecord) -> Result<(), BlobError> {
        let services = &self.store.0.services;
        let place = service_place(self.account);
        let op = match services.find(&place.key).await? {
            Some(old) => services.replace(&Typed { value: new, ..old })?,
            None => services.create(place.names, &new)?,
        };
        self.commit(vec![op], &[]).await
    }

    /// Removes a container with its blobs: the container first, so that nothing is added any more.
    pub(super) async fn remove_container(&self, container: &Typed<ContainerRecord>) -> Result<(), BlobError> {
        let inner = &self.store.0;
        self.commit(vec![inner.containers.delete(container)], &[]).await?;
        let name = &container.value.name;
        let blobs = inner.blobs.in_partition(&partition(self.account)).under(blob_prefix(name));
        loop {
            let page = inner.blobs.page(&blobs, Page::first(MAX_BATCH)).await?;
            if page.items.is_empty() {
                break;
            }
            for blob in page.items {
                self.commit(vec![inner.blobs.delete(&blob)], &blob.value.blocks).await?;
            }
        }
        let blocks = inner.blocks.in_partition(&partition(self.account)).under(blocks_prefix(name));
        for blocks in inner.blocks.all(&blocks).await?.items {
            self.commit(vec![inner.blocks.delete(&blocks)], &blocks.value.blocks).await?;
        }
        Ok(())
    }
}
