//! Keys and tokens of this crate's tests.

use aro_base::{SignedDuration, Timestamp};
use aro_pki::jws::{Algorithm, SigningKey};
use aro_pki::{Authority, Validity};
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "33e01921-4d64-4f8c-a055-5bdaffd5e33d";
pub(crate) const AUDIENCE: &str = "https://management.azure.com";

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// A new key of ECDSA.
pub(crate) fn key() -> SigningKey {
    let validity = Validity::from_now(now(), SignedDuration::from_hours(1));
    let pem = Authority::generate("test", validity).unwrap().key();
    SigningKey::from_pem(&pem, Algorithm::Es256).unwrap()
}

/// Claims of a valid token, with changes; a `null` removes a claim.
pub(crate) fn payload(changes: Value) -> Value {
    let mut claims = json!({
        "iss": format!("https://sts.windows.net/{TENANT}/"),
        "aud": "https://management.azure.com/",
        "tid": TENANT,
        "oid": "object",
        "sub": "object",
        "appid": "application",
        "idtyp": "app",
        "iat": now().as_second() - 60,
        "nbf": now().as_second() - 60,
        "exp": now().as_second() + 3600,
    });
    if let (Some(claims), Value::Object(changes)) = (claims.as_object_mut(), changes) {
        for (name, value) in changes {
            match value {
                Value::Null => drop(claims.remove(&name)),
                value => drop(claims.insert(name, value)),
            }
        }
    }
    claims
}
