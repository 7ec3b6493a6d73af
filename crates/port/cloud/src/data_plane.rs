//! Services beside Resource Manager: the data of vaults and storage accounts, credentials of managed identities,
//! permission checks.

mod blobs;
mod certificates;
mod check_access;
mod msi;
mod secrets;

pub use blobs::Blobs;
pub use certificates::{CertificateSpec, Certificates};
pub use check_access::{AccessDecision, AccessRequest, CheckAccess, Decision, Subject};
pub use msi::{ExplicitIdentity, IdentityCredentials, IdentityUrl, MsiDataPlane};
pub use secrets::{SecretAttributes, SecretSpec, Secrets, VaultSecret};

use bytes::Bytes;
use http::Response;
use serde::de::DeserializeOwned;

use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Pipeline, Progress, service_error};

impl Pipeline {
    fn progress(&self) -> Progress {
        Progress::new(self.core.deadline, None, None)
    }

    /// Sends a request and reads its JSON reply.
    async fn call<T: DeserializeOwned>(&self, out: &Outgoing) -> Result<T, CloudError> {
        let mut progress = self.progress();
        let reply = self.exchange(out, &mut progress).await?;
        let reply = self.accept(out, &progress, reply)?;
        decode(out, &progress, &reply)
    }

    fn accept(
        &self,
        out: &Outgoing,
        progress: &Progress,
        reply: Response<Bytes>,
    ) -> Result<Response<Bytes>, CloudError> {
        if reply.status().is_success() {
            return Ok(reply);
        }
        let error = service_error(&reply, self.core.clock.now());
        Err(progress.error(out, Failure::Refused(error)))
    }
}

fn decode<T: DeserializeOwned>(
    out: &Outgoing,
    progress: &Progress,
    reply: &Response<Bytes>,
) -> Result<T, CloudError> {
    serde_json::from_slice(reply.body())
        .map_err(|_| progress.error(out, Failure::Protocol("the body is not the expected JSON")))
}

/// `None` for what does not exist.
fn found<T>(result: Result<T, CloudError>) -> Result<Option<T>, CloudError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A path below a base URL; `None` if a segment would change its meaning.
fn below(base: &url::Url, segments: &[&str]) -> Option<url::Url> {
    if segments.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
        return None;
    }
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    Some(url)
}
