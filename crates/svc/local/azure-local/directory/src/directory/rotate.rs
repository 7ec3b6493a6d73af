//! Signing keys come and go: into the store first, then into use.

use std::sync::Arc;

use super::{Directory, setup};
use crate::DirectoryError;
use crate::documents::{SigningKeyRecord, key_place};
use crate::keys::KeyRing;

impl Directory {
    pub(super) async fn replace_signing_key(&self, record: SigningKeyRecord) -> Result<(), DirectoryError> {
        let _writer = self.0.writes.lock().await;
        let documents = &self.0.documents;
        let now = self.now();
        setup::create_key(documents, &record).await?;
        let mut records = self.0.keys.read().records().to_vec();
        for old in records.iter_mut().filter(|old| old.retired.is_none()) {
            old.retired = Some(now);
            let retire = |stored: &mut SigningKeyRecord| stored.retired.replace(now).is_none();
            documents.keys.update(&key_place(&old.key_id).key, retire).await?;
        }
        records.push(record);
        self.publish_keys(records)
    }

    pub(super) async fn remove_expired_keys(&self) -> Result<(), DirectoryError> {
        let _writer = self.0.writes.lock().await;
        let expired = self.0.keys.read().expired(self.now());
        if expired.is_empty() {
            return Ok(());
        }
        let keys = &self.0.documents.keys;
        for key_id in &expired {
            let place = key_place(key_id);
            if let Some(found) = keys.find(&place.key).await? {
                keys.store().write(keys.batch(&place.key.partition).with(keys.delete(&found))).await?;
            }
        }
        let left = self
            .0
            .keys
            .read()
            .records()
            .iter()
            .filter(|record| !expired.contains(&record.key_id))
            .cloned()
            .collect();
        self.publish_keys(left)
    }

    fn publish_keys(&self, records: Vec<SigningKeyRecord>) -> Result<(), DirectoryError> {
        let ring =
            KeyRing::of(records)?.ok_or(DirectoryError::Invalid("the directory has no signing key"))?;
        *self.0.keys.write() = Arc::new(ring);
        Ok(())
    }
}
