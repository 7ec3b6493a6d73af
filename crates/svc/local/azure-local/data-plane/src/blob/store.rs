//! Access to the documents of accounts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aro_base::{SharedClock, SignedDuration, Timestamp};
use aro_store::{
    Batch, Collection, CollectionError, MAX_BATCH, Op, Page, Query, SharedStore, StoreError, Typed,
    UnreadableDocuments,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use uuid::Uuid;

use super::documents::{
    BLOB, BLOB_KIND, BLOCKS_KIND, BlobRecord, Block, BlocksRecord, CHUNK_KIND, CONTAINER_KIND, ChunkRecord,
    ContainerRecord, GARBAGE_KIND, GarbageRecord, SERVICE_KIND, ServiceRecord, blob_place, blocks_place,
    chunk_place, container_place, garbage_place, partition, service_place,
};
use super::error::BlobError;
use super::writer::Writer;

/// Blocks that are not committed for this long are removed.
const UNCOMMITTED: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) struct Account {
    /// One writer at a time.
    writes: Arc<tokio::sync::Mutex<()>>,
    /// Bytes of blobs and blocks; `u64::MAX` until they were counted.
    used: AtomicU64,
}

impl Account {
    pub(super) fn release(&self, bytes: u64) {
        let less = |used: u64| (used != u64::MAX).then(|| used.saturating_sub(bytes));
        // Nothing to do before the first count.
        let _ = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    pub(super) fn reserve(&self, bytes: u64, budget: u64) -> Result<(), BlobError> {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= budget);
        let reserved = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        reserved.map(|_| ()).map_err(|_| BlobError::over_budget())
    }
}

/// The documents of all accounts. Cloning shares them.
#[derive(Clone)]
pub struct BlobStore(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) store: SharedStore,
    pub(super) clock: SharedClock,
    pub(super) budget: u64,
    pub(super) containers: Collection<ContainerRecord>,
    pub(super) blobs: Collection<BlobRecord>,
    pub(super) blocks: Collection<BlocksRecord>,
    pub(super) chunks: Collection<ChunkRecord>,
    pub(super) garbage: Collection<GarbageRecord>,
    pub(super) services: Collection<ServiceRecord>,
    accounts: Mutex<HashMap<String, Arc<Account>>>,
}

impl BlobStore {
    /// The accounts in a store. `budget` is how many bytes one account may hold.
    pub fn new(
        store: &SharedStore,
        clock: SharedClock,
        budget: u64,
        unreadable: &UnreadableDocuments,
    ) -> Self {
        fn of<T: serde::Serialize + serde::de::DeserializeOwned + Send>(
            store: &SharedStore,
            kind: aro_store::Kind<T>,
            unreadable: &UnreadableDocuments,
        ) -> Collection<T> {
            Collection::new(store.clone(), BLOB, kind, unreadable.clone())
        }
        Self(Arc::new(Inner {
            store: store.clone(),
            clock,
            budget,
            containers: of(store, CONTAINER_KIND, unreadable),
            blobs: of(store, BLOB_KIND, unreadable),
            blocks: of(store, BLOCKS_KIND, unreadable),
            chunks: of(store, CHUNK_KIND, unreadable),
            garbage: of(store, GARBAGE_KIND, unreadable),
            services: of(store, SERVICE_KIND, unreadable),
            accounts: Mutex::new(HashMap::new()),
        }))
    }

    pub(super) fn containers(&self) -> &Collection<ContainerRecord> {
        &self.0.containers
    }

    pub(super) fn blobs(&self) -> &Collection<BlobRecord> {
        &self.0.blobs
    }

    pub(super) async fn find_container(
        &self,
        account: &str,
        name: &str,
    ) -> Result<Option<Typed<ContainerRecord>>, BlobError> {
        Ok(self.0.containers.find(&container_place(account, name).key).await?)
    }

    pub(super) async fn get_container(
        &self,
        account: &str,
        name: &str,
    ) -> Result<Typed<ContainerRecord>, BlobError> {
        self.find_container(account, name).await?.ok_or_else(BlobError::no_container)
    }

    pub(super) async fn find_blob(
        &self,
        account: &str,
        container: &str,
        name: &str,
    ) -> Result<Option<Typed<BlobRecord>>, BlobError> {
        Ok(self.0.blobs.find(&blob_place(account, container, name).key).await?)
    }

    /// A blob; whether its container exists is looked up only if it does not.
    pub(super) async fn get_blob(
        &self,
        account: &str,
        container: &str,
        name: &str,
    ) -> Result<Typed<BlobRecord>, BlobError> {
        if let Some(found) = self.find_blob(account, container, name).await? {
            return Ok(found);
        }
        self.get_container(account, container).await?;
        Err(BlobError::no_blob())
    }

    pub(super) async fn find_blocks(
        &self,
        account: &str,
        container: &str,
        name: &str,
    ) -> Result<Option<Typed<BlocksRecord>>, BlobError> {
        Ok(self.0.blocks.find(&blocks_place(account, container, name).key).await?)
    }

    pub(super) async fn service(&self, account: &str) -> Result<ServiceRecord, BlobError> {
        let found = self.0.services.find(&service_place(account).key).await?;
        Ok(found.map(|found| found.value).unwrap_or_default())
    }

    /// The bytes of a part of a blob, chunk by chunk.
    pub(super) fn content(
        &self,
        account: &str,
        blob: &BlobRecord,
        start: u64,
        end: u64,
    ) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + use<> {
        let mut position = 0;
        let mut parts = Vec::new();
        for chunk in blob.blocks.iter().flat_map(|block| &block.chunks) {
            let (from, to) = (start.max(position), end.min(position + chunk.size));
            if from < to {
                parts.push((chunk.id, (from - position) as usize, (to - position) as usize));
            }
            position += chunk.size;
        }
        let (store, account) = (self.clone(), account.to_owned());
        futures::stream::unfold(parts.into_iter(), move |mut parts| {
            let (store, account) = (store.clone(), account.clone());
            async move {
                let (id, from, to) = parts.next()?;
                let bytes = store.chunk(&account, id).await;
                let part = bytes.and_then(|bytes| {
                    let lost = || std::io::Error::other("a chunk of the blob is too short");
                    (bytes.len() >= to).then(|| bytes.slice(from..to)).ok_or_else(lost)
                });
                Some((part, parts))
            }
        })
    }

    async fn chunk(&self, account: &str, id: Uuid) -> Result<Bytes, std::io::Error> {
        let found = self.0.chunks.find(&chunk_place(account, id).key).await.map_err(std::io::Error::other)?;
        let found = found.ok_or_else(|| std::io::Error::other("a chunk of the blob is missing"))?;
        STANDARD.decode(&found.value.data).map(Bytes::from).map_err(std::io::Error::other)
    }

    /// Waits for the turn to write to an account.
    pub(super) async fn writer<'a>(&'a self, account: &'a str) -> Result<Writer<'a>, BlobError> {
        let state = {
            let mut accounts = self.0.accounts.lock();
            accounts
                .entry(account.to_ascii_lowercase())
                .or_insert_with(|| {
                    Arc::new(Account { writes: Arc::default(), used: AtomicU64::new(u64::MAX) })
                })
                .clone()
        };
        let turn = state.writes.clone().lock_owned().await;
        if state.used.load(Ordering::Acquire) == u64::MAX {
            state.used.store(self.count(account).await?, Ordering::Release);
        }
        Ok(Writer::new(self, account, state, turn))
    }

    async fn count(&self, account: &str) -> Result<u64, BlobError> {
        let blobs = self.0.blobs.all(&self.0.blobs.in_partition(&partition(account))).await?;
        let blocks = self.0.blocks.all(&self.0.blocks.in_partition(&partition(account))).await?;
        let waiting = blocks.items.iter().flat_map(|record| &record.value.blocks).map(|block| block.size);
        Ok(blobs.items.iter().map(|blob| blob.value.size).sum::<u64>() + waiting.sum::<u64>())
    }

    /// Removes everything of an account, when its resource is deleted.
    pub async fn remove_account(&self, resource_id: &str) -> Result<(), CollectionError> {
        self.0.accounts.lock().remove(&resource_id.to_ascii_lowercase());
        let blobs = self.0.blobs.in_partition(&partition(resource_id));
        loop {
            // Chunks are found by their blobs only, so each blob becomes garbage first.
            let page = self.0.blobs.page(&blobs, Page::first(MAX_BATCH)).await?;
            if page.items.is_empty() {
                break;
            }
            for blob in page.items {
                self.discard_blob(resource_id, &blob).await?;
            }
        }
        for blocks in self.0.blocks.all(&self.0.blocks.in_partition(&partition(resource_id))).await?.items {
            self.discard_blocks(resource_id, &blocks).await?;
        }
        self.sweep(resource_id, Timestamp::MAX).await?;
        loop {
            let rest = Query::partition(BLOB, partition(resource_id));
            let found = self.0.store.query(&rest, Page::first(MAX_BATCH)).await?;
            if found.items.is_empty() {
                return Ok(());
            }
            let ops = found.items.into_iter().map(|document| Op::Delete(document.key.id, document.etag));
            let batch = ops.fold(Batch::new(BLOB, partition(resource_id)), Batch::with);
            match self.0.store.write(batch).await {
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn discard_blob(&self, account: &str, blob: &Typed<BlobRecord>) -> Result<bool, CollectionError> {
        self.discard(account, self.0.blobs.delete(blob), &blob.value.blocks).await
    }

    async fn discard_blocks(
        &self,
        account: &str,
        blocks: &Typed<BlocksRecord>,
    ) -> Result<bool, CollectionError> {
        self.discard(account, self.0.blocks.delete(blocks), &blocks.value.blocks).await
    }

    async fn discard(&self, account: &str, delete: Op, blocks: &[Block]) -> Result<bool, CollectionError> {
        let garbage = self.garbage_op(account, chunks_of(blocks), self.0.clock.now())?;
        self.write_ops(account, [Some(delete), garbage].into_iter().flatten().collect()).await
    }

    /// Removes garbage and blocks that were never committed. Call it every few minutes.
    pub async fn maintain(&self) -> Result<(), CollectionError> {
        let now = self.0.clock.now();
        let old = self.0.blocks.all(&self.0.blocks.everywhere()).await?;
        for blocks in
            old.items.iter().filter(|blocks| now.duration_since(blocks.value.modified) >= UNCOMMITTED)
        {
            let account = blocks.key.partition.as_str();
            let size: u64 = blocks.value.blocks.iter().map(|block| block.size).sum();
            if self.discard_blocks(account, blocks).await?
                && let Some(state) = self.0.accounts.lock().get(account)
            {
                state.release(size);
            }
        }
        for record in self.0.garbage.all(&self.0.garbage.everywhere()).await?.items {
            if record.value.after <= now {
                self.sweep_record(record.key.partition.as_str(), &record).await?;
            }
        }
        Ok(())
    }

    async fn sweep(&self, account: &str, now: Timestamp) -> Result<(), CollectionError> {
        for record in self.0.garbage.all(&self.0.garbage.in_partition(&partition(account))).await?.items {
            if record.value.after <= now {
                self.sweep_record(account, &record).await?;
            }
        }
        Ok(())
    }

    /// The record goes last: what is interrupted is repeated.
    async fn sweep_record(
        &self,
        account: &str,
        record: &Typed<GarbageRecord>,
    ) -> Result<(), CollectionError> {
        for id in &record.value.chunks {
            if let Some(chunk) = self.0.store.get(&chunk_place(account, *id).key).await? {
                self.write_ops(account, vec![Op::Delete(chunk.key.id, chunk.etag)]).await?;
            }
        }
        self.write_ops(account, vec![self.0.garbage.delete(record)]).await?;
        Ok(())
    }

    /// Writes a batch; `false` when another writer was faster.
    async fn write_ops(&self, account: &str, ops: Vec<Op>) -> Result<bool, CollectionError> {
        let batch = ops.into_iter().fold(Batch::new(BLOB, partition(account)), Batch::with);
        match self.0.store.write(batch).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn garbage_op(
        &self,
        account: &str,
        chunks: Vec<Uuid>,
        after: Timestamp,
    ) -> Result<Option<Op>, CollectionError> {
        if chunks.is_empty() {
            return Ok(None);
        }
        let place = garbage_place(account, Uuid::now_v7());
        self.0.garbage.create(place.names, &GarbageRecord { chunks, after }).map(Some)
    }
}

pub(super) fn chunks_of(blocks: &[Block]) -> Vec<Uuid> {
    blocks.iter().flat_map(|block| &block.chunks).map(|chunk| chunk.id).collect()
}
