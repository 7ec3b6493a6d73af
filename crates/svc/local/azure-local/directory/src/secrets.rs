//! Digests of client secrets.

use aro_base::{Secret, Timestamp};
use aws_lc_rs::{hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use uuid::Uuid;

use crate::DirectoryError;
use crate::model::PasswordRecord;

/// Graph shows this many characters of a secret.
const HINT: usize = 3;

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], DirectoryError> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| DirectoryError::Invalid("the system has no random numbers"))?;
    Ok(bytes)
}

/// A new secret of 240 bits.
pub(crate) fn generate() -> Result<Secret<String>, DirectoryError> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(random::<30>()?)))
}

/// What is stored of a secret.
pub(crate) fn record(
    secret: &Secret<String>,
    display_name: Option<String>,
    start: Timestamp,
    end: Timestamp,
) -> Result<PasswordRecord, DirectoryError> {
    let salt = random::<16>()?;
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &salt), secret.expose().as_bytes());
    Ok(PasswordRecord {
        key_id: Uuid::new_v4(),
        display_name,
        hint: secret.expose().chars().take(HINT).collect(),
        salt: STANDARD.encode(salt),
        digest: STANDARD.encode(tag.as_ref()),
        start,
        end,
    })
}

/// Whether a secret is the recorded one. The comparison takes the same time for every input.
pub(crate) fn is_secret(record: &PasswordRecord, secret: &str) -> bool {
    let (Ok(salt), Ok(digest)) = (STANDARD.decode(&record.salt), STANDARD.decode(&record.digest)) else {
        return false;
    };
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &salt), secret.as_bytes(), &digest).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_knows_its_secret_and_holds_nothing_of_it() {
        let secret = generate().unwrap();
        let made = record(&secret, None, Timestamp::UNIX_EPOCH, Timestamp::MAX).unwrap();
        assert!(is_secret(&made, secret.expose()));
        assert!(!is_secret(&made, "wrong"));
        assert!(!is_secret(&made, ""));
        let stored = serde_json::to_string(&made).unwrap();
        assert!(!stored.contains(secret.expose().as_str()));
        let again = record(&secret, None, Timestamp::UNIX_EPOCH, Timestamp::MAX).unwrap();
        assert_ne!(made.digest, again.digest, "salted");
    }
}
