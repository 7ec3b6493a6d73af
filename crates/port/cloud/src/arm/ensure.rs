//! Makes a resource as wanted: look, compare, write only a difference, wait.

use aro_arm::ResourceId;
use http::Method;
use serde_json::Value;

use super::{ArmClient, Precondition};
use crate::compare::{Lists, covers_with, overlay_with, provisioning_state};
use crate::error::{CloudError, Failure};

/// Times that a resource is read again after another writer changed it.
const MAX_ROUNDS: usize = 5;

/// What a PUT on an existing resource sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// The wanted members over what the resource is: for types whose PUT removes what it does not name, such as the
    /// subnets of a network.
    Overlay,
    /// The same, and parts of others in lists of named parts stay: for resources that Kubernetes also writes.
    Share,
    /// The wanted members only, and the tags of others.
    Replace,
}

impl ArmClient {
    /// Makes a resource as wanted in the members that `wanted` sets, and returns it. Does not write if it is already so.
    pub async fn ensure_resource(
        &self,
        id: &ResourceId,
        api_version: &str,
        wanted: &Value,
    ) -> Result<Value, CloudError> {
        self.ensure(id, api_version, wanted, Update::Overlay).await
    }

    /// [`ArmClient::ensure_resource`] with the way to update.
    pub async fn ensure(
        &self,
        id: &ResourceId,
        api_version: &str,
        wanted: &Value,
        update: Update,
    ) -> Result<Value, CloudError> {
        let lists = if update == Update::Share { Lists::Shared } else { Lists::Exact };
        let read = self.outgoing(Method::GET, id, api_version)?;
        let progress = self.progress();
        for _ in 0..MAX_ROUNDS {
            let found = self.find::<Value>(id, api_version).await?;
            let found = match found {
                // A write during another operation is refused.
                Some(current) => Some(self.settle_or_gone(&read, &progress, current).await?),
                None => None,
            };
            let written = match found.flatten() {
                None => self.put(id, api_version, wanted, &Precondition::None).await,
                Some(current) if !has_failed(&current) && covers_with(&current, wanted, lists) => {
                    return Ok(current);
                }
                Some(current) => {
                    let body = match update {
                        Update::Overlay | Update::Share => overlay_with(&current, wanted, lists),
                        Update::Replace => keep_tags(&current, wanted),
                    };
                    self.put(id, api_version, &body, &unchanged(&current)).await
                }
            };
            match written {
                Err(error) if error.is_changed() => {}
                written => return written,
            }
        }
        Err(progress.error(&read, Failure::Changed))
    }

    /// The resource in a final state; `None` if it went away meanwhile.
    async fn settle_or_gone(
        &self,
        read: &crate::pipeline::Outgoing,
        progress: &crate::pipeline::Progress,
        current: Value,
    ) -> Result<Option<Value>, CloudError> {
        let deleting =
            provisioning_state(&current).is_some_and(|state| state.eq_ignore_ascii_case("deleting"));
        if !deleting {
            return match self.settle(read, progress, current.clone()).await {
                // It failed by itself; what is wanted is written over it.
                Err(error) if matches!(error.failure(), Failure::Operation { .. }) => {
                    Ok(Some(failed(current)))
                }
                settled => settled.map(Some),
            };
        }
        let mut gone = read.clone();
        gone.method = Method::DELETE;
        self.settle(&gone, progress, current).await.map(|_| None)
    }
}

fn has_failed(resource: &Value) -> bool {
    provisioning_state(resource)
        .is_some_and(|state| ["failed", "canceled"].iter().any(|word| state.eq_ignore_ascii_case(word)))
}

fn failed(mut resource: Value) -> Value {
    if let Some(state) = resource.pointer_mut("/properties/provisioningState") {
        *state = Value::from("Failed");
    }
    resource
}

/// Resources with an etag are written only as they were read.
pub(crate) fn unchanged(resource: &Value) -> Precondition {
    match resource.get("etag").and_then(Value::as_str) {
        Some(etag) if !etag.is_empty() => Precondition::Unchanged(etag.to_owned()),
        _ => Precondition::None,
    }
}

fn keep_tags(current: &Value, wanted: &Value) -> Value {
    let Some(Value::Object(tags)) = current.get("tags") else { return wanted.clone() };
    let mut body = wanted.clone();
    if let Value::Object(members) = &mut body {
        let ours = members.entry("tags").or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Value::Object(ours) = ours {
            for (key, value) in tags {
                ours.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_of_others_stay_and_ours_win() {
        let current = json!({"tags": {"theirs": "1", "ours": "old"}});
        let body = keep_tags(&current, &json!({"tags": {"ours": "new"}}));
        assert_eq!(body, json!({"tags": {"ours": "new", "theirs": "1"}}));
    }

    #[test]
    fn an_etag_is_the_precondition_of_an_update() {
        assert_eq!(unchanged(&json!({"etag": "W/\"1\""})), Precondition::Unchanged("W/\"1\"".to_owned()));
        assert_eq!(unchanged(&json!({"etag": ""})), Precondition::None);
    }
}
