//! Keys out of passwords, and the ciphers that use them.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{
    AES_128, AES_256, AES_CBC_IV_LEN, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{digest, hmac, pbkdf2};
use des::TdesEde3;
use des::cipher::{Array, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};

use super::reader::{INTEGER, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE};
use super::{WHAT, oid, wide};
use crate::PkiError;

/// More rounds than any tool writes; a file must not choose how long the server works.
const MOST_ROUNDS: u32 = 1_000_000;

/// What a derived key is for (RFC 7292, appendix B.3).
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Key = 1,
    Vector = 2,
    Mac = 3,
}

pub(super) fn rounds(number: u32) -> Result<NonZeroU32, PkiError> {
    NonZeroU32::new(number).filter(|rounds| rounds.get() <= MOST_ROUNDS).ok_or(WHAT)
}

/// The format's own derivation (RFC 7292, appendix B.2).
pub(super) fn derive(
    algorithm: &'static digest::Algorithm,
    password: &[u8],
    salt: &[u8],
    rounds: NonZeroU32,
    purpose: Purpose,
    length: usize,
) -> Vec<u8> {
    let block = algorithm.block_len();
    let stretch = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().copied().cycle().take(bytes.len().div_ceil(block) * block).collect()
    };
    let diversifier = vec![purpose as u8; block];
    let mut input = [stretch(salt), stretch(password)].concat();
    let mut out = Vec::with_capacity(length + algorithm.output_len());
    while out.len() < length {
        let mut hash = digest::digest(algorithm, &[diversifier.as_slice(), &input].concat());
        for _ in 1..rounds.get() {
            hash = digest::digest(algorithm, hash.as_ref());
        }
        out.extend_from_slice(hash.as_ref());
        let adder: Vec<u8> = hash.as_ref().iter().copied().cycle().take(block).collect();
        for chunk in input.chunks_mut(block) {
            add(chunk, &adder);
        }
    }
    out.truncate(length);
    out
}

/// `chunk = chunk + adder + 1`, as numbers of the same length.
fn add(chunk: &mut [u8], adder: &[u8]) {
    let mut carry = 1_u16;
    for (digit, other) in chunk.iter_mut().zip(adder).rev() {
        carry += u16::from(*digit) + u16::from(*other);
        *digit = carry as u8;
        carry >>= 8;
    }
}

const BLOCK: usize = 8;

fn triple_des(password: &str, salt: &[u8], rounds: NonZeroU32) -> Result<(TdesEde3, [u8; BLOCK]), PkiError> {
    let password = wide(password);
    let part =
        |purpose, length| derive(&digest::SHA1_FOR_LEGACY_USE_ONLY, &password, salt, rounds, purpose, length);
    let cipher = TdesEde3::new_from_slice(&part(Purpose::Key, 24)).map_err(|_| WHAT)?;
    let vector = part(Purpose::Vector, BLOCK).try_into().map_err(|_| WHAT)?;
    Ok((cipher, vector))
}

/// Encrypts with triple DES in CBC mode.
pub(super) fn encrypt(
    plain: &[u8],
    password: &str,
    salt: &[u8],
    rounds: NonZeroU32,
) -> Result<Vec<u8>, PkiError> {
    let (cipher, mut previous) = triple_des(password, salt, rounds)?;
    let padding = BLOCK - plain.len() % BLOCK;
    let mut out = plain.to_vec();
    out.resize(plain.len() + padding, padding as u8);
    for block in out.chunks_exact_mut(BLOCK) {
        for (digit, before) in block.iter_mut().zip(previous) {
            *digit ^= before;
        }
        let mut value = Array::try_from(&*block).map_err(|_| WHAT)?;
        cipher.encrypt_block(&mut value);
        block.copy_from_slice(&value);
        previous = value.into();
    }
    Ok(out)
}

fn decrypt_triple_des(
    secret: &[u8],
    password: &str,
    salt: &[u8],
    rounds: NonZeroU32,
) -> Result<Vec<u8>, PkiError> {
    let (cipher, mut previous) = triple_des(password, salt, rounds)?;
    if secret.is_empty() || !secret.len().is_multiple_of(BLOCK) {
        return Err(WHAT);
    }
    let mut out = Vec::with_capacity(secret.len());
    for block in secret.chunks_exact(BLOCK) {
        let mut value = Array::try_from(block).map_err(|_| WHAT)?;
        cipher.decrypt_block(&mut value);
        out.extend(value.iter().zip(previous).map(|(digit, before)| digit ^ before));
        previous = block.try_into().map_err(|_| WHAT)?;
    }
    let padding = out.last().copied().map_or(0, usize::from);
    let end = out.len().checked_sub(padding).filter(|_| (1..=BLOCK).contains(&padding)).ok_or(WHAT)?;
    if out.iter().skip(end).any(|digit| usize::from(*digit) != padding) {
        return Err(WHAT);
    }
    out.truncate(end);
    Ok(out)
}

/// Decrypts what an `AlgorithmIdentifier` says how.
pub(super) fn decrypt(
    algorithm: &mut Reader<'_>,
    secret: &[u8],
    password: &str,
) -> Result<Vec<u8>, PkiError> {
    let kind = algorithm.take(OBJECT_ID)?;
    let mut parameters = algorithm.nested(SEQUENCE)?;
    if kind == oid::SHA1_3DES {
        let salt = parameters.take(OCTET_STRING)?;
        let rounds = rounds(parameters.number()?)?;
        return decrypt_triple_des(secret, password, salt, rounds);
    }
    if kind != oid::PBES2 {
        return Err(WHAT);
    }
    decrypt_pbes2(&mut parameters, secret, password)
}

fn decrypt_pbes2(parameters: &mut Reader<'_>, secret: &[u8], password: &str) -> Result<Vec<u8>, PkiError> {
    let mut derivation = parameters.nested(SEQUENCE)?;
    let mut scheme = parameters.nested(SEQUENCE)?;
    if derivation.take(OBJECT_ID)? != oid::PBKDF2 {
        return Err(WHAT);
    }
    let mut derivation = derivation.nested(SEQUENCE)?;
    let salt = derivation.take(OCTET_STRING)?;
    let rounds = rounds(derivation.number()?)?;
    let mut random = pbkdf2::PBKDF2_HMAC_SHA1;
    while !derivation.is_empty() {
        match derivation.any()? {
            // The key's length, which the cipher tells as well.
            (INTEGER, _) => {}
            (SEQUENCE, function) => {
                random = match Reader::new(function).take(OBJECT_ID)? {
                    oid::HMAC_SHA1 => pbkdf2::PBKDF2_HMAC_SHA1,
                    oid::HMAC_SHA256 => pbkdf2::PBKDF2_HMAC_SHA256,
                    _ => return Err(WHAT),
                };
            }
            _ => return Err(WHAT),
        }
    }
    let (cipher, length) = match scheme.take(OBJECT_ID)? {
        oid::AES_128_CBC => (&AES_128, 16),
        oid::AES_256_CBC => (&AES_256, 32),
        _ => return Err(WHAT),
    };
    let vector: [u8; AES_CBC_IV_LEN] = scheme.take(OCTET_STRING)?.try_into().map_err(|_| WHAT)?;
    let mut key = vec![0; length];
    pbkdf2::derive(random, rounds, salt, password.as_bytes(), &mut key);
    let key = UnboundCipherKey::new(cipher, &key).map_err(|_| WHAT)?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(|_| WHAT)?;
    let mut out = secret.to_vec();
    let plain = key.decrypt(&mut out, DecryptionContext::Iv128(FixedLength::from(vector)));
    plain.map(|plain| plain.to_vec()).map_err(|_| WHAT)
}

/// The digest over the content, by a key out of the password.
pub(super) fn mac(
    sha256: bool,
    password: &[u8],
    salt: &[u8],
    rounds: NonZeroU32,
    content: &[u8],
) -> hmac::Tag {
    let (hash, algorithm) = if sha256 {
        (&digest::SHA256, hmac::HMAC_SHA256)
    } else {
        (&digest::SHA1_FOR_LEGACY_USE_ONLY, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY)
    };
    let key = derive(hash, password, salt, rounds, Purpose::Mac, hash.output_len());
    hmac::sign(&hmac::Key::new(algorithm, &key), content)
}
