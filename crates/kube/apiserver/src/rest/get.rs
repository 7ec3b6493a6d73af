//! Reading one object.

use aro_kube_apimachinery::status::Status;

use super::call::Call;
use crate::http::answer::Answer;

pub(super) async fn get(call: &mut Call) -> Result<Answer, Status> {
    if let Some(version) = call.query.get("resourceVersion").filter(|version| *version != "0") {
        // Upstream does not call this the client's fault.
        let version =
            version.parse().map_err(|_| Status::new(500, "", super::list::invalid_version(version)))?;
        super::list::until_version(call, version).await?;
    }
    match call.watch_cache.get(&call.key()) {
        Some(object) => call.answer(200, &object),
        None => Err(call.not_found()),
    }
}
