//! Capability URLs: they name a resource and a tenant, and only this directory can make them.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::http::Head;

const PREFIX: &str = "msi";

/// What a URL gives access to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Capability {
    pub resource_id: String,
    pub tenant: Uuid,
}

impl Capability {
    fn message(&self) -> String {
        format!("{}\n{}", self.tenant, self.resource_id)
    }

    pub(super) fn url(&self, host: &str, key: &hmac::Key) -> String {
        let resource = URL_SAFE_NO_PAD.encode(&self.resource_id);
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(key, self.message().as_bytes()).as_ref());
        format!("https://{host}/{PREFIX}/{resource}?tid={}&sig={signature}", self.tenant)
    }

    /// `None`: the URL is not one of this directory.
    pub(super) fn parse(head: &Head, key: &hmac::Key) -> Option<Self> {
        let [prefix, resource] = head.path.as_slice() else { return None };
        if prefix != PREFIX {
            return None;
        }
        let resource_id = String::from_utf8(URL_SAFE_NO_PAD.decode(resource).ok()?).ok()?;
        let tenant = Uuid::try_parse(head.parameter("tid")?).ok()?;
        let capability = Self { resource_id, tenant };
        let signature = URL_SAFE_NO_PAD.decode(head.parameter("sig")?).ok()?;
        hmac::verify(key, capability.message().as_bytes(), &signature).ok()?;
        Some(capability)
    }
}
