//! Certificates of managed identities.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::{SignedDuration, Timestamp};
use aro_pki::pkcs12::{self, Bundle};
use aro_pki::{Leaf, Subject, Usage, Validity};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::model::Application;
use crate::{Directory, DirectoryError};

const DAY: i64 = 24;
const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(46 * DAY);
const VALID: SignedDuration = SignedDuration::from_hours(90 * DAY);
const CANNOT_RENEW_AFTER: SignedDuration = SignedDuration::from_hours(180 * DAY);

/// Credentials remembered: about 4 KB each.
const MOST_REMEMBERED: usize = 2000;

/// A certificate with its key, as the caller gets it.
pub(crate) struct Issued {
    /// PKCS #12 without a password, base64.
    pub bundle: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub renew_after: Timestamp,
    pub cannot_renew_after: Timestamp,
}

/// The last credential of each identity. Callers ask often, and an RSA key takes long to make. Private keys are kept in memory
/// only: after a restart an identity gets a new one, and those handed out before stay valid.
#[derive(Default)]
pub(crate) struct IssuedCredentials(Mutex<HashMap<Uuid, Arc<Issued>>>);

impl IssuedCredentials {
    fn fresh(&self, app_id: Uuid, now: Timestamp) -> Option<Arc<Issued>> {
        self.0.lock().get(&app_id).filter(|issued| issued.renew_after > now).cloned()
    }

    fn remember(&self, app_id: Uuid, issued: Arc<Issued>) {
        let mut all = self.0.lock();
        if all.len() >= MOST_REMEMBERED {
            all.clear();
        }
        all.insert(app_id, issued);
    }

    pub(crate) fn forget(&self, app_id: Uuid) {
        self.0.lock().remove(&app_id);
    }
}

/// The credential of an identity: the last one, or a new one when that is to be renewed.
pub(super) async fn credential(
    directory: &Directory,
    application: &Application,
) -> Result<Arc<Issued>, DirectoryError> {
    let now = directory.now();
    if let Some(issued) = directory.0.issued.fresh(application.app_id, now) {
        return Ok(issued);
    }
    let key = directory.0.prepared.take().await?;
    let validity = Validity::from_now(now, VALID);
    let leaf = Leaf {
        subject: Subject::new(application.app_id.to_string(), [application.tenant.to_string()]),
        dns_names: vec![],
        addresses: vec![],
        usage: Usage::Client,
        validity,
    };
    let certificate = directory.0.authority.issue_for_key(&leaf, &key)?;
    let der = pem::parse(&certificate.certificate)
        .map_err(|_| DirectoryError::Invalid("an issued certificate is not PEM"))?
        .into_contents();
    directory.record_issued(application, &der).await?;
    let bundle = pkcs12::write(&Bundle { key, certificates: vec![der] }, "")?;
    let after = |period| now.saturating_add(period).unwrap_or(Timestamp::MAX);
    let issued = Arc::new(Issued {
        bundle: STANDARD.encode(bundle),
        not_before: validity.not_before,
        not_after: validity.not_after,
        renew_after: after(RENEW_AFTER),
        cannot_renew_after: after(CANNOT_RENEW_AFTER),
    });
    directory.0.issued.remember(application.app_id, issued.clone());
    tracing::info!(identity = %application.app_id, "identity credential issued");
    Ok(issued)
}
