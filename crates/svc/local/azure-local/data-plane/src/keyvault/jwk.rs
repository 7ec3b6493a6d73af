//! Private keys from and to JSON Web Keys.

use aro_pki::{KeyPem, key_pem};
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeyPairComponents, PublicKeyComponents};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The curves of keys.
pub(super) const CURVES: [(&str, &EcdsaSigningAlgorithm); 3] = [
    ("P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
    ("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
    ("P-521", &ECDSA_P521_SHA512_FIXED_SIGNING),
];

/// A private key, read.
pub(super) enum PrivateKey {
    Rsa(RsaKeyPair),
    Ec(&'static str, EcdsaKeyPair),
}

/// The content (PKCS #8) of a key in PEM.
pub(super) fn der(pem: &str) -> Option<Vec<u8>> {
    pem::parse(pem).ok().map(pem::Pem::into_contents)
}

/// Reads a stored key.
pub(super) fn read(pem: &str) -> Option<PrivateKey> {
    let der = der(pem)?;
    if let Ok(pair) = RsaKeyPair::from_pkcs8(&der) {
        return Some(PrivateKey::Rsa(pair));
    }
    CURVES.iter().find_map(|(name, algorithm)| {
        EcdsaKeyPair::from_pkcs8(algorithm, &der).ok().map(|pair| PrivateKey::Ec(name, pair))
    })
}

/// The public members of a key.
pub(super) fn public(pem: &str) -> Option<Value> {
    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    match read(pem)? {
        PrivateKey::Rsa(pair) => {
            let key = pair.public_key();
            let (n, e) = (key.modulus(), key.exponent());
            let (n, e) = (n.big_endian_without_leading_zero(), e.big_endian_without_leading_zero());
            Some(json!({"kty": "RSA", "n": text(n), "e": text(e)}))
        }
        PrivateKey::Ec(curve, pair) => {
            let point = pair.public_key().as_ref().get(1..)?;
            let (x, y) = point.split_at_checked(point.len() / 2)?;
            Some(json!({"kty": "EC", "crv": curve, "x": text(x), "y": text(y)}))
        }
    }
}

/// Reads a key with its private members; `None` if it is not one, or its members do not fit.
pub(super) fn import(key: &Value) -> Option<KeyPem> {
    let member = |name: &str| URL_SAFE_NO_PAD.decode(key.get(name)?.as_str()?.trim_end_matches('=')).ok();
    match key.get("kty")?.as_str()? {
        "RSA" => {
            let components = KeyPairComponents {
                public_key: PublicKeyComponents { n: member("n")?, e: member("e")? },
                d: member("d")?,
                p: member("p")?,
                q: member("q")?,
                dP: member("dp")?,
                dQ: member("dq")?,
                qInv: member("qi")?,
            };
            let pair = RsaKeyPair::from_components(&components).ok()?;
            let der: Pkcs8V1Der<'_> = pair.as_der().ok()?;
            Some(key_pem(der.as_ref()))
        }
        "EC" => {
            let curve = key.get("crv")?.as_str()?;
            let (_, algorithm) = CURVES.iter().find(|(name, _)| *name == curve)?;
            let point = [&[4], member("x")?.as_slice(), member("y")?.as_slice()].concat();
            let pair =
                EcdsaKeyPair::from_private_key_and_public_key(algorithm, &member("d")?, &point).ok()?;
            Some(key_pem(pair.to_pkcs8v1().ok()?.as_ref()))
        }
        _ => None,
    }
}
