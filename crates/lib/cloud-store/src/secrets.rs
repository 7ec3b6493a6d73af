//! Secrets of resources: keys of storage accounts, passwords of container registries and of their tokens.

use std::fmt;

use aro_base::{Secret, Timestamp};
use aws_lc_rs::{hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// The system gives no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers")]
pub struct NoRandom;

/// A secret of a resource. It is part of no answer but that of the action that asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSecret {
    /// Names it among the secrets of its resource: `key1`, `password2`.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// What is stored of it.
    pub value: SecretValue,
}

/// What is stored of a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretValue {
    /// The secret, because clients may ask for it again.
    Plain(String),
    /// A salted digest: the secret was shown once. Both in base64.
    Digest {
        /// The key of the digest.
        salt: String,
        /// HMAC-SHA-256 of the secret.
        digest: String,
    },
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}

impl ResourceSecret {
    /// A key of 512 bits in base64 that can be read again, as storage accounts have it.
    pub fn key(name: &str, now: Timestamp) -> Result<Self, NoRandom> {
        Ok(Self::plain(name, STANDARD.encode(random::<64>()?), now))
    }

    /// A password of 240 bits that can be read again.
    pub fn password(name: &str, now: Timestamp) -> Result<Self, NoRandom> {
        Ok(Self::plain(name, URL_SAFE_NO_PAD.encode(random::<30>()?), now))
    }

    fn plain(name: &str, value: String, now: Timestamp) -> Self {
        Self { name: name.to_owned(), created: now, expires: None, value: SecretValue::Plain(value) }
    }

    /// A password of 240 bits of which a digest is stored; the password itself is returned once.
    pub fn digested(
        name: &str,
        now: Timestamp,
        expires: Option<Timestamp>,
    ) -> Result<(Self, Secret<String>), NoRandom> {
        let password = URL_SAFE_NO_PAD.encode(random::<30>()?);
        let salt = random::<16>()?;
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &salt), password.as_bytes());
        let value =
            SecretValue::Digest { salt: STANDARD.encode(salt), digest: STANDARD.encode(tag.as_ref()) };
        Ok((Self { name: name.to_owned(), created: now, expires, value }, Secret::new(password)))
    }

    /// The secret, if it is stored as it is.
    pub fn exposed(&self) -> Option<&str> {
        match &self.value {
            SecretValue::Plain(value) => Some(value),
            SecretValue::Digest { .. } => None,
        }
    }

    /// Whether a text is this secret and the secret has not ended. The comparison takes the same time for every text.
    pub fn is(&self, text: &str, now: Timestamp) -> bool {
        if self.expires.is_some_and(|expires| expires <= now) {
            return false;
        }
        match &self.value {
            SecretValue::Plain(value) => {
                // Digests under one key are compared instead of the texts: their length is always the same.
                let key = hmac::Key::new(hmac::HMAC_SHA256, value.as_bytes());
                let tag = hmac::sign(&key, value.as_bytes());
                hmac::verify(&key, text.as_bytes(), tag.as_ref()).is_ok()
            }
            SecretValue::Digest { salt, digest } => {
                let (Ok(salt), Ok(digest)) = (STANDARD.decode(salt), STANDARD.decode(digest)) else {
                    return false;
                };
                hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &salt), text.as_bytes(), &digest).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn a_digest_knows_its_password_until_it_ends_and_holds_nothing_of_it() {
        let ends = Timestamp::from_second(10).unwrap();
        let (record, password) = ResourceSecret::digested("password1", NOW, Some(ends)).unwrap();
        assert!(record.is(password.expose(), NOW));
        assert!(!record.is("wrong", NOW) && !record.is("", NOW));
        assert!(!record.is(password.expose(), ends));
        assert_eq!(record.exposed(), None);
        let stored = serde_json::to_string(&record).unwrap();
        assert!(!stored.contains(password.expose().as_str()));
        assert_eq!(serde_json::from_str::<ResourceSecret>(&stored).unwrap(), record);
    }

    #[test]
    fn a_key_can_be_read_again_and_is_never_printed() {
        let key = ResourceSecret::key("key1", NOW).unwrap();
        let value = key.exposed().unwrap();
        assert_eq!(STANDARD.decode(value).unwrap().len(), 64);
        assert!(key.is(value, Timestamp::MAX) && !key.is("wrong", NOW));
        assert!(!format!("{key:?}").contains(value));
        assert_ne!(ResourceSecret::key("key1", NOW).unwrap().exposed(), Some(value));
    }
}
