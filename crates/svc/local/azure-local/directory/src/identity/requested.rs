//! The body of a request for user-assigned identities.

use serde::Deserialize;
use serde_json::Value;

/// More than a cluster has.
const MOST_IDENTITIES: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Requested {
    #[serde(default)]
    pub identity_ids: Vec<String>,
    #[serde(default)]
    pub custom_claims: Value,
}

pub(super) fn parse(body: &[u8]) -> Result<Requested, String> {
    let requested: Requested =
        serde_json::from_slice(body).map_err(|_| "The body is not a credential request.".to_owned())?;
    match requested.identity_ids.len() {
        0 => Err("The body must name at least one identity in 'identityIds'.".to_owned()),
        1..=MOST_IDENTITIES => Ok(requested),
        _ => Err(format!("The body must name at most {MOST_IDENTITIES} identities.")),
    }
}
