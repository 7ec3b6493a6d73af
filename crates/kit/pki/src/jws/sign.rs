//! The private half: signs claims.

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Serialize;

use super::{Algorithm, Chain, Header, Jwk};
use crate::{KeyPem, PkiError};

/// A private key that signs tokens with one algorithm.
pub struct SigningKey {
    pair: Pair,
    algorithm: Algorithm,
    jwk: Jwk,
    key_id: String,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

const KEY: PkiError = PkiError::Unreadable("the signing key");

impl SigningKey {
    /// Reads a private key (PEM, PKCS #8). The key must be of the algorithm's type.
    pub fn from_pem(key: &KeyPem, algorithm: Algorithm) -> Result<Self, PkiError> {
        let block = pem::parse(key.expose()).map_err(|_| KEY)?;
        let (pair, public) = match algorithm {
            Algorithm::Es256 => {
                let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, block.contents())
                    .map_err(|_| KEY)?;
                let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| KEY)?;
                (Pair::Ec(pair), public)
            }
            Algorithm::Rs256 | Algorithm::Ps256 => {
                let pair = RsaKeyPair::from_pkcs8(block.contents()).map_err(|_| KEY)?;
                let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| KEY)?;
                (Pair::Rsa(pair), public)
            }
        };
        let key_id = URL_SAFE_NO_PAD
            .encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, public.as_ref()).as_ref());
        let jwk = public_jwk(&pair, algorithm, &key_id)?;
        Ok(Self { pair, algorithm, jwk, key_id })
    }

    /// The name of the key in tokens: the digest of its public half.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The public half, to be published.
    pub fn jwk(&self) -> &Jwk {
        &self.jwk
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, PkiError> {
        self.sign_under(&self.header(), claims)
    }

    /// A token with these claims whose header names its type and, for verifiers that know the signer by its certificate
    /// (DER) instead of a key's name, the certificate.
    pub fn sign_jwt(&self, claims: &impl Serialize, certificate: Option<&[u8]>) -> Result<String, PkiError> {
        use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
        let hash = |algorithm: &'static Algorithm| {
            Some(URL_SAFE_NO_PAD.encode(digest(algorithm, certificate?).as_ref()))
        };
        let header = Header {
            typ: Some("JWT".to_owned()),
            x5t: hash(&SHA1_FOR_LEGACY_USE_ONLY),
            x5t_s256: hash(&SHA256),
            x5c: certificate.map(|der| Chain::Many(vec![STANDARD.encode(der)])),
            ..self.header()
        };
        self.sign_under(&header, claims)
    }

    fn header(&self) -> Header {
        let kid = Some(self.key_id.clone());
        Header { alg: self.algorithm, kid, typ: None, x5t: None, x5t_s256: None, x5c: None, crit: None }
    }

    fn sign_under(&self, header: &Header, claims: &impl Serialize) -> Result<String, PkiError> {
        const TOKEN: PkiError = PkiError::Unreadable("the claims of a token");
        let header = serde_json::to_vec(header).map_err(|_| TOKEN)?;
        let claims = serde_json::to_vec(claims).map_err(|_| TOKEN)?;
        let mut token = URL_SAFE_NO_PAD.encode(header);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.signature(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, PkiError> {
        const SIGN: PkiError = PkiError::Unreadable("the signature of a token");
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair) => {
                let signature = pair.sign(&random, message).map_err(|_| SIGN)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Rsa(pair) => {
                let padding: &'static dyn aws_lc_rs::signature::RsaEncoding = match self.algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &random, message, &mut signature).map_err(|_| SIGN)?;
                Ok(signature)
            }
        }
    }
}

fn public_jwk(pair: &Pair, algorithm: Algorithm, key_id: &str) -> Result<Jwk, PkiError> {
    let number = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
    match pair {
        Pair::Ec(pair) => {
            // An uncompressed point: a tag and two coordinates of 32 bytes.
            let point = pair.public_key().as_ref();
            let (x, y) = point.get(1..).and_then(|point| point.split_at_checked(32)).ok_or(KEY)?;
            let key = Jwk::signing("EC", "ES256", key_id);
            Ok(Jwk { crv: Some("P-256".to_owned()), x: number(x), y: number(y), ..key })
        }
        Pair::Rsa(pair) => {
            let public = pair.public_key();
            let alg = if algorithm == Algorithm::Ps256 { "PS256" } else { "RS256" };
            let (n, e) = (public.modulus(), public.exponent());
            let key = Jwk::signing("RSA", alg, key_id);
            Ok(Jwk {
                n: number(n.big_endian_without_leading_zero()),
                e: number(e.big_endian_without_leading_zero()),
                ..key
            })
        }
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.key_id)
    }
}
