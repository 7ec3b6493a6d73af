//! ARM's notifications about subscriptions.

use aro_arm::subscription::{State, Subscription, is_date};
use aro_arm::{FieldError, FieldPath, ResourceId};
use aro_arm_server::{Answer, Failure, retry_conflicts};
use aro_rp_store::{Cascade, Write};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::shared::{Request, Shared};

pub async fn handle(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let id = ResourceId::of_subscription(request.matched.subscription());
    if request.method == Method::GET {
        let stored = shared.documents.find::<Subscription>(&id).await?.ok_or(Failure::NotFound(id))?;
        return Ok(answer(&stored.value));
    }
    debug_assert_eq!(request.method, Method::PUT);
    let subscription = decode(&request.json()?).map_err(Failure::Problems)?;
    retry_conflicts(|_| put(shared, &id, &subscription)).await
}

/// Stores what changed. The clusters of a deleted subscription are deleted too: they may be many, so the
/// cascade controller does it, not this request.
async fn put(shared: &Shared, id: &ResourceId, new: &Subscription) -> Result<Answer, Failure> {
    let stored = shared.documents.find::<Subscription>(id).await?;
    let mut write = Write::new(id.name());
    match &stored {
        None => write.create(id, new)?,
        Some(old) if old.value == *new => return Ok(answer(new)),
        Some(old) => write.replace(id, new, &old.etag)?,
    };
    if new.state == State::Deleted {
        let cascade = Cascade { root: id.clone() };
        if !shared.documents.exists(&cascade.id()).await? {
            write.create(&cascade.id(), &cascade)?;
        }
    }
    write.commit(shared.documents.store()).await?;
    tracing::info!(
        subscription_id = id.name(),
        state = new.state.as_str(),
        before = stored.as_ref().map_or("", |old| old.value.state.as_str()),
        "subscription state changed",
    );
    if new.state == State::Deleted {
        shared.cascades.add(id.clone());
    }
    Ok(answer(new))
}

/// The document as notified; nothing of how it is stored.
fn answer(subscription: &Subscription) -> Answer {
    let value = serde_json::to_value(subscription).unwrap_or_default();
    Answer::json(StatusCode::OK, &aro_arm::json::sorted(value))
}

/// Reads a notification, naming everything that is wrong with it.
fn decode(body: &Value) -> Result<Subscription, Vec<FieldError>> {
    let root = FieldPath::root();
    let Some(members) = body.as_object() else {
        return Err(vec![FieldError::undecodable(&root, "expected an object")]);
    };
    let mut problems = Vec::new();
    let text = |name: &str, problems: &mut Vec<FieldError>| match members.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        None | Some(Value::Null | Value::String(_)) => {
            problems.push(FieldError::required(&root.child(name)));
            None
        }
        Some(_) => {
            problems.push(FieldError::undecodable(&root.child(name), format!("{name}: expected a string")));
            None
        }
    };
    if let Some(state) = text("state", &mut problems)
        && !State::NAMES.contains(&state.as_str())
    {
        problems.push(FieldError::unsupported(&root.child("state"), &state, &State::NAMES));
    }
    if let Some(date) = text("registrationDate", &mut problems)
        && !is_date(&date)
    {
        problems.push(FieldError::invalid(
            &root.child("registrationDate"),
            &date,
            "must be an RFC 1123 or RFC 3339 time",
        ));
    }
    if let Some(properties) = members.get("properties")
        && !properties.is_object()
        && !properties.is_null()
    {
        problems.push(FieldError::undecodable(&root.child("properties"), "properties: expected an object"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_json::from_value(body.clone())
        .map_err(|error| vec![FieldError::undecodable(&root, error.to_string())])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_notification_keeps_members_that_are_not_read() {
        let body = json!({
            "state": "Registered", "registrationDate": "Thu, 01 Jan 2026 00:00:00 GMT",
            "properties": {"tenantId": "t", "quotaId": "q", "registeredFeatures": [{"name": "n", "state": "Registered"}]}
        });
        let subscription = decode(&body).unwrap();
        assert_eq!(serde_json::to_value(&subscription).unwrap(), body);
    }

    #[test]
    fn all_problems_of_a_notification_are_reported_at_once() {
        let problems =
            decode(&json!({"state": "Gone", "registrationDate": 5, "properties": []})).unwrap_err();
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["state", "registrationDate", "properties"]);
        assert_eq!(decode(&json!([])).unwrap_err().len(), 1);
        assert_eq!(decode(&json!({})).unwrap_err().len(), 2);
    }
}
