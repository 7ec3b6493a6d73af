//! Writes a file.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, rand};

use super::reader::{EXPLICIT, IMPLICIT, INTEGER, OBJECT_ID, OCTET_STRING, SEQUENCE};
use super::{Bundle, WHAT, oid, protect, wide};
use crate::PkiError;
use crate::der::wrap;

const SET: u8 = 0x31;
const NULL: &[u8] = &[0x05, 0x00];
const ROUNDS: NonZeroU32 = NonZeroU32::new(2048).expect("not zero");

/// The bundle as a file that this password opens. Readers expect exactly two parts: encrypted certificates, then the key.
pub fn write(bundle: &Bundle, password: &str) -> Result<Vec<u8>, PkiError> {
    let key = pem::parse(bundle.key.expose()).map_err(|_| PkiError::Unreadable("the private key"))?;
    let own = bundle.certificates.first().ok_or(PkiError::Unreadable("the certificate"))?;
    let key_id = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, own);
    let bags: Vec<Vec<u8>> = bundle
        .certificates
        .iter()
        .enumerate()
        .map(|(index, der)| certificate_bag(der, (index == 0).then_some(key_id.as_ref())))
        .collect();
    let certificates = encrypted_part(&sequence(&bags), password)?;
    let keys = sequence(&[key_bag(key.contents(), key_id.as_ref(), password)?]);
    let content = sequence(&[certificates, content_info(oid::DATA, &wrap(OCTET_STRING, &keys))]);
    let salt = salt()?;
    let tag = protect::mac(false, &wide(password), &salt, ROUNDS, &content);
    let hash = sequence(&[wrap(OBJECT_ID, oid::SHA1), NULL.to_vec()]);
    let mac = sequence(&[
        sequence(&[hash, wrap(OCTET_STRING, tag.as_ref())]),
        wrap(OCTET_STRING, &salt),
        number(ROUNDS.get()),
    ]);
    Ok(sequence(&[wrap(INTEGER, &[3]), content_info(oid::DATA, &wrap(OCTET_STRING, &content)), mac]))
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    wrap(SEQUENCE, &parts.concat())
}

fn number(number: u32) -> Vec<u8> {
    // A zero in front keeps it positive.
    let digits: Vec<u8> = number.to_be_bytes().into_iter().skip_while(|digit| *digit == 0).collect();
    let front: &[u8] = if digits.first().is_none_or(|first| *first >= 0x80) { &[0] } else { &[] };
    wrap(INTEGER, &[front, &digits].concat())
}

fn content_info(kind: &[u8], content: &[u8]) -> Vec<u8> {
    sequence(&[wrap(OBJECT_ID, kind), wrap(EXPLICIT, content)])
}

fn bag(kind: &[u8], value: &[u8], key_id: Option<&[u8]>) -> Vec<u8> {
    let mut parts = vec![wrap(OBJECT_ID, kind), wrap(EXPLICIT, value)];
    if let Some(key_id) = key_id {
        let values = wrap(SET, &wrap(OCTET_STRING, key_id));
        parts.push(wrap(SET, &sequence(&[wrap(OBJECT_ID, oid::LOCAL_KEY_ID), values])));
    }
    sequence(&parts)
}

fn certificate_bag(der: &[u8], key_id: Option<&[u8]>) -> Vec<u8> {
    let value = sequence(&[wrap(OBJECT_ID, oid::X509_CERTIFICATE), wrap(EXPLICIT, &wrap(OCTET_STRING, der))]);
    bag(oid::CERTIFICATE_BAG, &value, key_id)
}

fn salt() -> Result<[u8; 8], PkiError> {
    let mut salt = [0; 8];
    rand::fill(&mut salt).map_err(|_| WHAT)?;
    Ok(salt)
}

fn algorithm(salt: &[u8]) -> Vec<u8> {
    let parameters = sequence(&[wrap(OCTET_STRING, salt), number(ROUNDS.get())]);
    sequence(&[wrap(OBJECT_ID, oid::SHA1_3DES), parameters])
}

fn key_bag(key: &[u8], key_id: &[u8], password: &str) -> Result<Vec<u8>, PkiError> {
    let salt = salt()?;
    let secret = protect::encrypt(key, password, &salt, ROUNDS)?;
    let value = sequence(&[algorithm(&salt), wrap(OCTET_STRING, &secret)]);
    Ok(bag(oid::SHROUDED_KEY_BAG, &value, Some(key_id)))
}

fn encrypted_part(content: &[u8], password: &str) -> Result<Vec<u8>, PkiError> {
    let salt = salt()?;
    let secret = protect::encrypt(content, password, &salt, ROUNDS)?;
    let info = sequence(&[wrap(OBJECT_ID, oid::DATA), algorithm(&salt), wrap(IMPLICIT, &secret)]);
    Ok(content_info(oid::ENCRYPTED_DATA, &sequence(&[wrap(INTEGER, &[0]), info])))
}
