//! Resources that are questions: reviews of tokens and of access.

use aro_machinery::status::Status;

use crate::http::answer::Answer;
use crate::rest::Call;
use crate::types::Served;

/// Whether a resource is answered and not stored.
pub fn is_review(served: &Served) -> bool {
    matches!(served.resource.gvk.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
}

pub async fn handle(call: Call) -> Result<Answer, Status> {
    let _ = call;
    Err(crate::rest::method_not_allowed())
}
