//! What the directory makes for itself at its first start.

use aro_base::{Secret, SignedDuration, Timestamp};
use aro_pki::{Authority, Validity};
use aro_store::{CollectionError, StoreError};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::documents::{Documents, RootRecord, SigningKeyRecord, key_place, root_place};
use crate::keys::{self, KeyRing};
use crate::{DirectoryError, secrets};

const TEN_YEARS: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

pub(super) struct Root {
    pub authority: Authority,
    pub capability_key: hmac::Key,
}

pub(super) async fn load_or_make_root(documents: &Documents, now: Timestamp) -> Result<Root, DirectoryError> {
    let place = root_place();
    let record = if let Some(found) = documents.roots.find(&place.key).await? {
        found.value
    } else {
        let record = make_root(now)?;
        let create = documents.roots.create(place.names, &record)?;
        documents.roots.store().write(documents.roots.batch(&place.key.partition).with(create)).await?;
        record
    };
    let capability_key = STANDARD
        .decode(&record.capability_key)
        .map_err(|_| DirectoryError::Invalid("the stored capability key is not base64"))?;
    Ok(Root {
        authority: Authority::load(&record.authority, &Secret::new(record.authority_key))?,
        capability_key: hmac::Key::new(hmac::HMAC_SHA256, &capability_key),
    })
}

fn make_root(now: Timestamp) -> Result<RootRecord, DirectoryError> {
    let validity = Validity::from_now(now, TEN_YEARS);
    let authority = Authority::generate("Local directory: managed identities", validity)?;
    Ok(RootRecord {
        authority: authority.certificate().to_owned(),
        authority_key: authority.key().expose().clone(),
        capability_key: STANDARD.encode(secrets::random::<32>()?),
    })
}

pub(super) async fn load_or_make_keys(
    documents: &Documents,
    now: Timestamp,
) -> Result<KeyRing, DirectoryError> {
    let stored = documents.keys.all(&documents.keys.everywhere()).await?.complete()?;
    let mut records: Vec<SigningKeyRecord> = stored.into_iter().map(|stored| stored.value).collect();
    if records.iter().all(|record| record.retired.is_some()) {
        let record = keys::generate_record(now).await?;
        create_key(documents, &record).await?;
        records.push(record);
    }
    KeyRing::of(records)?.ok_or(DirectoryError::Invalid("the directory has no signing key"))
}

pub(super) async fn create_key(
    documents: &Documents,
    record: &SigningKeyRecord,
) -> Result<(), CollectionError> {
    let place = key_place(&record.key_id);
    let create = documents.keys.create(place.names, record)?;
    let written = documents.keys.store().write(documents.keys.batch(&place.key.partition).with(create)).await;
    written.map(|_| ()).map_err(|error: StoreError| error.into())
}
