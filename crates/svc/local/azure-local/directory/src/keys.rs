//! The keys that sign tokens.
//!
//! One key signs; those before it stay published until the last token that they signed has expired.

use std::sync::Arc;

use aro_base::{Secret, SignedDuration, Timestamp};
use aro_pki::jws::{Algorithm, Jwk, KeySet, SigningKey, VerifyingKey};
use aro_pki::{KeyPem, PkiError, RsaBits, generate_rsa};

use crate::DirectoryError;
use crate::documents::SigningKeyRecord;

/// Longer than any token lives.
pub(crate) const KEEP_RETIRED: SignedDuration = SignedDuration::from_hours(26);

/// The signing key and all published ones.
pub(crate) struct KeyRing {
    pub signing: Arc<SigningKey>,
    pub published: Vec<Jwk>,
    pub set: KeySet,
    records: Vec<SigningKeyRecord>,
}

impl KeyRing {
    /// A ring of these keys: the newest that was not retired signs. `None` if there is none.
    pub(crate) fn of(records: Vec<SigningKeyRecord>) -> Result<Option<Self>, PkiError> {
        let newest =
            records.iter().filter(|record| record.retired.is_none()).max_by_key(|record| record.created);
        let Some(newest) = newest else { return Ok(None) };
        let signing = Arc::new(signing_key(newest)?);
        let published = records
            .iter()
            .map(|record| signing_key(record).map(|key| key.jwk().clone()))
            .collect::<Result<Vec<_>, _>>()?;
        let set = KeySet::new(published.iter().filter_map(VerifyingKey::from_jwk));
        Ok(Some(Self { signing, published, set, records }))
    }

    pub(crate) fn records(&self) -> &[SigningKeyRecord] {
        &self.records
    }

    /// Whether the signing key has been used for long enough.
    pub(crate) fn is_due(&self, now: Timestamp, period: SignedDuration) -> bool {
        let current = self.records.iter().filter(|record| record.retired.is_none());
        current.map(|record| record.created).max().is_none_or(|made| now.duration_since(made) >= period)
    }

    /// Keys whose tokens have all expired.
    pub(crate) fn expired(&self, now: Timestamp) -> Vec<String> {
        let expired = |record: &&SigningKeyRecord| {
            record.retired.is_some_and(|retired| now.duration_since(retired) >= KEEP_RETIRED)
        };
        self.records.iter().filter(expired).map(|record| record.key_id.clone()).collect()
    }
}

fn signing_key(record: &SigningKeyRecord) -> Result<SigningKey, PkiError> {
    SigningKey::from_pem(&Secret::new(record.key.clone()), Algorithm::Rs256)
}

/// Generates an RSA key on a thread that may block.
pub(crate) async fn generate() -> Result<KeyPem, DirectoryError> {
    let made = tokio::task::spawn_blocking(|| generate_rsa(RsaBits::B2048)).await;
    Ok(made.map_err(|_| DirectoryError::Invalid("the key generator stopped"))??)
}

/// A new key, as it is stored.
pub(crate) async fn generate_record(now: Timestamp) -> Result<SigningKeyRecord, DirectoryError> {
    let pem = generate().await?;
    let key_id = SigningKey::from_pem(&pem, Algorithm::Rs256)?.key_id().to_owned();
    Ok(SigningKeyRecord { key_id, key: pem.expose().clone(), created: now, retired: None })
}
