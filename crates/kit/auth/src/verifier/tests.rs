use aro_base::{Secret, SignedDuration};
use aro_pki::jws::{Algorithm, KeySet, SigningKey, VerifyingKey};
use aws_lc_rs::encoding::AsDer as _;
use futures::FutureExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{AUDIENCE, TENANT, key, now, payload};
use crate::{Issuer, StaticKeys};

fn rules() -> Rules {
    Rules::new([Issuer::Tenant(TENANT.to_owned())], [AUDIENCE])
}

fn verifier(rules: Rules, key: &SigningKey) -> TokenVerifier {
    let keys = KeySet::new(VerifyingKey::from_jwk(key.jwk()));
    TokenVerifier::new(rules, Arc::new(StaticKeys::new(keys)))
}

/// Static keys never wait.
fn verify(verifier: &TokenVerifier, token: &str) -> Result<Claims, AuthError> {
    verifier.verify(token, now()).now_or_never().expect("static keys are ready at once")
}

fn judged(rules: Rules, changes: Value) -> Result<Claims, AuthError> {
    let key = key();
    verify(&verifier(rules, &key), &key.sign(&payload(changes)).unwrap())
}

fn rsa(algorithm: Algorithm) -> SigningKey {
    let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
    let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let text = pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref()));
    SigningKey::from_pem(&Secret::new(text), algorithm).unwrap()
}

#[test]
fn a_valid_token_of_every_algorithm_leads_to_its_claims() {
    for key in [key(), rsa(Algorithm::Rs256), rsa(Algorithm::Ps256)] {
        let token = key.sign(&payload(json!({"upn": "a@example.com", "groups": ["g"]}))).unwrap();
        let claims = verify(&verifier(rules(), &key), &token).unwrap();
        assert_eq!(claims.tenant_id.as_deref(), Some(TENANT));
        assert_eq!(claims.object_id.as_deref(), Some("object"));
        assert_eq!(claims.app_id.as_deref(), Some("application"));
        assert_eq!(claims.audience, "https://management.azure.com/");
        assert_eq!(claims.user_name.as_deref(), Some("a@example.com"));
        assert_eq!(claims.groups, ["g"]);
        assert!(claims.is_application());
    }
}

#[test]
fn each_broken_rule_has_its_own_error() {
    let at = |offset: i64| json!(now().as_second() + offset);
    for (changes, expected) in [
        (json!({"exp": at(-299)}), None),
        (json!({"exp": at(-300)}), Some(AuthError::Expired)),
        (json!({"nbf": at(300)}), None),
        (json!({"nbf": at(301)}), Some(AuthError::NotYetValid)),
        (json!({"nbf": null}), None),
        (json!({"exp": null}), Some(AuthError::Malformed)),
        (json!({"aud": "https://graph.microsoft.com"}), Some(AuthError::WrongAudience)),
        (json!({"aud": ["x", AUDIENCE]}), None),
        (json!({"aud": []}), Some(AuthError::WrongAudience)),
        (json!({"iss": "https://sts.windows.net/other/"}), Some(AuthError::WrongIssuer)),
        (json!({"tid": "00000000-0000-0000-0000-000000000001"}), Some(AuthError::WrongIssuer)),
        (json!({"tid": null}), Some(AuthError::WrongIssuer)),
        (json!({"iss": format!("https://login.microsoftonline.com/{TENANT}/v2.0")}), None),
    ] {
        assert_eq!(judged(rules(), changes.clone()).err(), expected, "{changes}");
    }
}

#[test]
fn applications_and_token_types_are_restricted_where_the_rules_ask_for_it() {
    let only = || rules().for_applications(["APPLICATION"]);
    assert!(judged(only(), json!({})).is_ok(), "ids are compared without case");
    for changes in [json!({"appid": "other"}), json!({"appid": null})] {
        assert_eq!(judged(only(), changes).err(), Some(AuthError::WrongApplication));
    }
    let applications = || rules().for_application_tokens();
    assert!(judged(applications(), json!({})).is_ok());
    let user = judged(applications(), json!({"idtyp": "user"}));
    assert_eq!(user.err(), Some(AuthError::NotApplicationToken));
}

#[test]
fn a_token_of_another_key_or_a_changed_one_is_refused() {
    let (own, other) = (key(), key());
    let verifier = verifier(rules(), &own);
    let foreign = other.sign(&payload(json!({}))).unwrap();
    assert_eq!(verify(&verifier, &foreign).err(), Some(AuthError::BadSignature));
    let token = own.sign(&payload(json!({}))).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let forged = URL_SAFE_NO_PAD.encode(payload(json!({"oid": "admin"})).to_string());
    let changed = format!("{}.{forged}.{}", parts[0], parts[2]);
    assert_eq!(verify(&verifier, &changed).err(), Some(AuthError::BadSignature));
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    assert_eq!(verify(&verifier, &format!("{none}.{}.", parts[1])).err(), Some(AuthError::BadSignature));
}

#[test]
fn what_is_no_token_is_malformed_and_nothing_is_missing() {
    let own = key();
    let small = Rules { max_token: 100, ..rules() };
    assert_eq!(verify(&verifier(rules(), &own), "").err(), Some(AuthError::Missing));
    for text in ["x", "a.b", "a.b.c", "..", "e30.e30", "e30"] {
        let error = verify(&verifier(rules(), &own), text).err();
        assert!(matches!(error, Some(AuthError::Malformed | AuthError::BadSignature)), "{text}: {error:?}");
    }
    let token = own.sign(&payload(json!({}))).unwrap();
    assert_eq!(verify(&verifier(small, &own), &token).err(), Some(AuthError::Malformed));
}

#[test]
fn the_bearer_scheme_is_found_in_any_case_and_other_schemes_are_no_token() {
    for (header, expected) in [
        (None, Err(AuthError::Missing)),
        (Some(""), Err(AuthError::Missing)),
        (Some("Bearer"), Err(AuthError::Missing)),
        (Some("Bearer "), Err(AuthError::Missing)),
        (Some("Basic abc"), Err(AuthError::Missing)),
        (Some("Bearer a.b.c"), Ok("a.b.c")),
        (Some("bearer  a.b.c "), Ok("a.b.c")),
        (Some("Bearer a b"), Err(AuthError::Malformed)),
    ] {
        assert_eq!(bearer_token(header), expected, "{header:?}");
    }
}

#[test]
fn extreme_times_are_compared_without_overflow() {
    let claims = judged(rules(), json!({"exp": 253_402_207_200_i64})).unwrap();
    assert!(claims.expires > now().saturating_add(SignedDuration::from_hours(24)).unwrap());
    assert_eq!(judged(rules(), json!({"exp": -377_705_023_201_i64})).err(), Some(AuthError::Expired));
}

proptest! {
    #[test]
    fn no_text_panics_the_verifier(text in ".{0,200}", parts in prop::collection::vec("[A-Za-z0-9_-]{0,40}", 0..5)) {
        let verifier = verifier(rules(), &key());
        let _ = verify(&verifier, &text);
        let _ = verify(&verifier, &parts.join("."));
        let _ = bearer_token(Some(&text));
    }

    #[test]
    fn no_signed_claims_panic_the_verifier(
        name in "(exp|nbf|iat|aud|iss|tid|appid|azp|groups|roles|cnf|idtyp|_claim_names|hasgroups|scp)",
        number in any::<f64>(),
        text in ".{0,40}",
        shape in 0..5_u8,
    ) {
        let value = match shape {
            0 => json!(number),
            1 => json!(text),
            2 => json!([text, number]),
            3 => json!({text.clone(): number, "kid": text, "groups": 1}),
            _ => Value::Null,
        };
        let _ = judged(rules(), json!({name: value}));
    }
}
