use aro_base::Secret;
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;
use crate::KeyPem;

fn ec_key() -> KeyPem {
    Secret::new(rcgen::KeyPair::generate().unwrap().serialize_pem())
}

fn rsa_key() -> KeyPem {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    Secret::new(pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref().to_vec())))
}

fn key(algorithm: Algorithm) -> SigningKey {
    let pem = if algorithm == Algorithm::Es256 { ec_key() } else { rsa_key() };
    SigningKey::from_pem(&pem, algorithm).unwrap()
}

fn published(keys: &[&SigningKey]) -> KeySet {
    let keys: Vec<&Jwk> = keys.iter().map(|key| key.jwk()).collect();
    KeySet::from_json(json!({"keys": keys}).to_string().as_bytes()).unwrap()
}

fn claims() -> Value {
    json!({"sub": "someone", "exp": 1})
}

#[test]
fn a_token_of_each_algorithm_is_verified_with_the_published_key() {
    for algorithm in [Algorithm::Es256, Algorithm::Rs256, Algorithm::Ps256] {
        let key = key(algorithm);
        let token = key.sign(&claims()).unwrap();
        let payload = published(&[&key]).verify(&token).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&payload).unwrap(), claims(), "{algorithm:?}");
    }
}

#[test]
fn a_set_picks_the_key_that_the_token_names() {
    let (old, new) = (key(Algorithm::Es256), key(Algorithm::Es256));
    let set = published(&[&old, &new]);
    assert!(set.verify(&old.sign(&claims()).unwrap()).is_ok());
    assert!(set.verify(&new.sign(&claims()).unwrap()).is_ok());
    let stranger = key(Algorithm::Es256);
    assert_eq!(set.verify(&stranger.sign(&claims()).unwrap()), Err(JwsError::UnknownKey));
}

#[test]
fn a_changed_payload_is_refused() {
    let key = key(Algorithm::Es256);
    let token = key.sign(&claims()).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let forged = URL_SAFE_NO_PAD.encode(json!({"sub": "admin"}).to_string());
    let forged = format!("{}.{forged}.{}", parts[0], parts[2]);
    assert_eq!(published(&[&key]).verify(&forged), Err(JwsError::BadSignature));
}

#[test]
fn a_token_cannot_choose_no_signature_or_another_algorithm() {
    let key = key(Algorithm::Rs256);
    let set = published(&[&key]);
    let token = key.sign(&claims()).unwrap();
    let with_header = |header: Value| {
        let rest = token.split_once('.').unwrap().1;
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()))
    };
    assert_eq!(set.verify(&with_header(json!({"alg": "none"}))), Err(JwsError::Unsupported));
    assert_eq!(set.verify(&with_header(json!({"alg": "HS256"}))), Err(JwsError::Unsupported));
    // The key is published for RS256 only.
    let pss = with_header(json!({"alg": "PS256", "kid": key.key_id()}));
    assert_eq!(set.verify(&pss), Err(JwsError::UnknownKey));
    let extended = with_header(json!({"alg": "RS256", "kid": key.key_id(), "crit": ["b64"], "b64": false}));
    assert_eq!(set.verify(&extended), Err(JwsError::Unsupported));
}

#[test]
fn a_rsa_key_that_names_no_algorithm_serves_both() {
    let pem = rsa_key();
    for algorithm in [Algorithm::Rs256, Algorithm::Ps256] {
        let key = SigningKey::from_pem(&pem, algorithm).unwrap();
        let jwk = Jwk { alg: None, ..key.jwk().clone() };
        let set = KeySet::new(VerifyingKey::from_jwk(&jwk));
        assert!(set.verify(&key.sign(&claims()).unwrap()).is_ok(), "{algorithm:?}");
    }
}

#[test]
fn keys_that_do_not_sign_or_are_of_another_type_are_left_out() {
    let key = key(Algorithm::Es256);
    let encrypting = Jwk { usage: Some("enc".to_owned()), ..key.jwk().clone() };
    assert!(VerifyingKey::from_jwk(&encrypting).is_none());
    let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}, {"kty": 7}, key.jwk()]});
    let set = KeySet::from_json(set.to_string().as_bytes()).unwrap();
    assert!(set.verify(&key.sign(&claims()).unwrap()).is_ok());
}

#[test]
fn what_is_no_token_is_refused_without_a_panic() {
    let set = published(&[&key(Algorithm::Es256)]);
    for text in ["", ".", "..", "...", "a.b.c", "é.é.é", "e30.e30.", "W10.W10.W10"] {
        assert!(set.verify(text).is_err(), "{text}");
    }
    let long = "a".repeat(1 << 20);
    assert_eq!(set.verify(&long), Err(JwsError::TooLong));
    let deep = URL_SAFE_NO_PAD.encode("[".repeat(30_000));
    assert_eq!(set.verify(&format!("{deep}.e30.e30")), Err(JwsError::Malformed));
}

#[test]
fn a_key_of_the_wrong_type_is_refused() {
    assert!(SigningKey::from_pem(&ec_key(), Algorithm::Rs256).is_err());
    assert!(SigningKey::from_pem(&rsa_key(), Algorithm::Es256).is_err());
    assert!(SigningKey::from_pem(&Secret::new("none".to_owned()), Algorithm::Es256).is_err());
}

#[test]
fn a_token_of_a_certificate_names_it_and_is_verified_with_its_key() {
    let pem = rsa_key();
    let pair = rcgen::KeyPair::from_pem(pem.expose()).unwrap();
    let certificate = rcgen::CertificateParams::default().self_signed(&pair).unwrap();
    let key = SigningKey::from_pem(&pem, Algorithm::Ps256).unwrap();
    let token = key.sign_jwt(&claims(), Some(certificate.der())).unwrap();
    let peeked = Unverified::of(&token).unwrap();
    assert_eq!(peeked.certificate.as_deref(), Some(certificate.der().as_ref()));
    assert_eq!(peeked.thumbprint.unwrap().len(), 20);
    assert_eq!(peeked.thumbprint_sha256.unwrap().len(), 32);
    let verifying = VerifyingKey::of_certificate(certificate.der()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&verifying.verify(&token).unwrap()).unwrap(), claims());
    let stranger = SigningKey::from_pem(&rsa_key(), Algorithm::Ps256).unwrap();
    assert_eq!(verifying.verify(&stranger.sign(&claims()).unwrap()), Err(JwsError::BadSignature));
    let other_type = SigningKey::from_pem(&ec_key(), Algorithm::Es256).unwrap();
    assert_eq!(verifying.verify(&other_type.sign(&claims()).unwrap()), Err(JwsError::UnknownKey));
}
