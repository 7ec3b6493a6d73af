//! Deleting a whole collection.

use aro_kube_apimachinery::status::Status;
use serde_json::json;

use super::call::Call;
use super::delete::{delete_object, options};
use super::list::{Selection, render, select};
use crate::http::answer::{self, Answer};

pub(super) async fn delete(call: &mut Call) -> Result<Answer, Status> {
    let options = options(call)?;
    let selection = Selection::of(call)?;
    let (listed, _) = select(call, &selection).await?;
    for object in &listed.objects {
        match delete_object(&call.cluster, &call.served, &object.key, &options).await {
            Ok(_) => {}
            // Already deleted by another client: the result is the same.
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    let mut metadata = json!({"resourceVersion": listed.version.to_string()});
    if call.served.resource.custom {
        metadata["continue"] = json!("");
    }
    Ok(answer::json_bytes(200, render(call, &listed.objects, &metadata)))
}
