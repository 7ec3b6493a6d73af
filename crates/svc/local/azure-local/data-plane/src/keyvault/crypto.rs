//! The operations of keys. Digests come from the caller: Key Vault never sees the message.

use aws_lc_rs::digest::{self, Digest, SHA256, SHA384, SHA512};
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepAlgorithm, OaepPrivateDecryptingKey,
    OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey, PrivateDecryptingKey,
};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding,
    VerificationAlgorithm,
};

use super::error::VaultError;
use super::jwk::{self, PrivateKey};

fn unsupported(algorithm: &str) -> VaultError {
    let algorithm: String = algorithm.chars().take(40).collect();
    VaultError::bad(&format!("Property alg has invalid value: {algorithm} is not supported by this key"))
}

enum Padding {
    Oaep(&'static OaepAlgorithm),
    Pkcs1,
}

fn padding(algorithm: &str) -> Result<Padding, VaultError> {
    match algorithm {
        "RSA-OAEP" => Ok(Padding::Oaep(&OAEP_SHA1_MGF1SHA1)),
        "RSA-OAEP-256" => Ok(Padding::Oaep(&OAEP_SHA256_MGF1SHA256)),
        "RSA1_5" => Ok(Padding::Pkcs1),
        _ => Err(unsupported(algorithm)),
    }
}

fn decrypting_key(pem: &str, algorithm: &str) -> Result<PrivateDecryptingKey, VaultError> {
    let der = jwk::der(pem).ok_or_else(|| VaultError::internal("read a stored key"))?;
    PrivateDecryptingKey::from_pkcs8(&der).map_err(|_| unsupported(algorithm))
}

/// Encrypts or wraps.
pub(super) fn encrypt(pem: &str, algorithm: &str, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
    let long =
        |_| VaultError::bad("Property value has invalid value: it is too long for the key and algorithm");
    let padding = padding(algorithm)?;
    let key = decrypting_key(pem, algorithm)?.public_key();
    match padding {
        Padding::Oaep(oaep) => {
            let key = OaepPublicEncryptingKey::new(key).map_err(|_| unsupported(algorithm))?;
            let mut out = vec![0; key.ciphertext_size()];
            key.encrypt(oaep, plain, &mut out, None).map(|secret| secret.to_vec()).map_err(long)
        }
        Padding::Pkcs1 => {
            let key = Pkcs1PublicEncryptingKey::new(key).map_err(|_| unsupported(algorithm))?;
            let mut out = vec![0; key.ciphertext_size()];
            key.encrypt(plain, &mut out).map(|secret| secret.to_vec()).map_err(long)
        }
    }
}

/// Decrypts or unwraps.
pub(super) fn decrypt(pem: &str, algorithm: &str, secret: &[u8]) -> Result<Vec<u8>, VaultError> {
    let wrong = |_| VaultError::bad("The parameter is incorrect.");
    let padding = padding(algorithm)?;
    let key = decrypting_key(pem, algorithm)?;
    match padding {
        Padding::Oaep(oaep) => {
            let key = OaepPrivateDecryptingKey::new(key).map_err(|_| unsupported(algorithm))?;
            let mut out = vec![0; key.min_output_size()];
            key.decrypt(oaep, secret, &mut out, None).map(|plain| plain.to_vec()).map_err(wrong)
        }
        Padding::Pkcs1 => {
            let key = Pkcs1PrivateDecryptingKey::new(key).map_err(|_| unsupported(algorithm))?;
            let mut out = vec![0; key.min_output_size()];
            key.decrypt(secret, &mut out).map(|plain| plain.to_vec()).map_err(wrong)
        }
    }
}

fn hash(algorithm: &str) -> Option<&'static digest::Algorithm> {
    match algorithm.get(2..)? {
        "256" => Some(&SHA256),
        "384" => Some(&SHA384),
        "512" => Some(&SHA512),
        _ => None,
    }
}

fn imported(algorithm: &str, bytes: &[u8]) -> Result<Digest, VaultError> {
    let hash = hash(algorithm).ok_or_else(|| unsupported(algorithm))?;
    Digest::import_less_safe(bytes, hash)
        .map_err(|_| VaultError::bad("Invalid length of value: the digest does not fit the algorithm"))
}

/// The algorithm of a curve.
fn of_curve(curve: &str) -> &'static str {
    match curve {
        "P-256" => "ES256",
        "P-384" => "ES384",
        _ => "ES512",
    }
}

/// Signs a digest.
pub(super) fn sign(pem: &str, algorithm: &str, bytes: &[u8]) -> Result<Vec<u8>, VaultError> {
    let key = jwk::read(pem).ok_or_else(|| VaultError::internal("read a stored key"))?;
    let digest = imported(algorithm, bytes)?;
    match key {
        PrivateKey::Rsa(pair) => {
            let encoding: &'static dyn RsaEncoding = match algorithm {
                "RS256" => &RSA_PKCS1_SHA256,
                "RS384" => &RSA_PKCS1_SHA384,
                "RS512" => &RSA_PKCS1_SHA512,
                "PS256" => &RSA_PSS_SHA256,
                "PS384" => &RSA_PSS_SHA384,
                "PS512" => &RSA_PSS_SHA512,
                _ => return Err(unsupported(algorithm)),
            };
            let mut signature = vec![0; pair.public_modulus_len()];
            pair.sign_digest(encoding, &digest, &mut signature).map_err(|_| unsupported(algorithm))?;
            Ok(signature)
        }
        PrivateKey::Ec(curve, pair) if of_curve(curve) == algorithm => {
            let signature = pair.sign_digest(&digest).map_err(|_| unsupported(algorithm))?;
            Ok(signature.as_ref().to_vec())
        }
        PrivateKey::Ec(..) => Err(unsupported(algorithm)),
    }
}

/// Whether a signature is of this key and digest.
pub(super) fn verify(pem: &str, algorithm: &str, bytes: &[u8], signature: &[u8]) -> Result<bool, VaultError> {
    let key = jwk::read(pem).ok_or_else(|| VaultError::internal("read a stored key"))?;
    let digest = imported(algorithm, bytes)?;
    let verifying: &dyn VerificationAlgorithm = match (&key, algorithm) {
        (PrivateKey::Rsa(_), "RS256") => &RSA_PKCS1_2048_8192_SHA256,
        (PrivateKey::Rsa(_), "RS384") => &RSA_PKCS1_2048_8192_SHA384,
        (PrivateKey::Rsa(_), "RS512") => &RSA_PKCS1_2048_8192_SHA512,
        (PrivateKey::Rsa(_), "PS256") => &RSA_PSS_2048_8192_SHA256,
        (PrivateKey::Rsa(_), "PS384") => &RSA_PSS_2048_8192_SHA384,
        (PrivateKey::Rsa(_), "PS512") => &RSA_PSS_2048_8192_SHA512,
        (PrivateKey::Ec("P-256", _), "ES256") => &ECDSA_P256_SHA256_FIXED,
        (PrivateKey::Ec("P-384", _), "ES384") => &ECDSA_P384_SHA384_FIXED,
        (PrivateKey::Ec("P-521", _), "ES512") => &ECDSA_P521_SHA512_FIXED,
        _ => return Err(unsupported(algorithm)),
    };
    let public = match &key {
        PrivateKey::Rsa(pair) => pair.public_key().as_ref(),
        PrivateKey::Ec(_, pair) => pair.public_key().as_ref(),
    };
    Ok(verifying.verify_digest_sig(public, &digest, signature).is_ok())
}
