//! Resource groups and subscriptions.

use std::collections::BTreeSet;

use aro_arm::ResourceId;
use aro_arm_server::{Answer, Failure, paging, retry_conflicts};
use aro_cloud_store::{CLOUD, Operation, Resource, partition_of};
use aro_store::Query;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cloud::{Cloud, GROUP, SUBSCRIPTION, SubscriptionFacts, group_id, object};
use crate::mutations::Change;
use crate::provider::CloudRequest;
use crate::refusal::Refusal;
use crate::write::body_of;
use crate::{check, locations, operations, render, types};

impl Cloud {
    /// One resource group, by any method.
    pub(crate) async fn group(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        let (subscription, group) = (request.matched.subscription(), request.matched.group());
        let id = group_id(subscription, group);
        let found = || async {
            Ok::<_, Failure>(self.find(GROUP, &id).await?.ok_or_else(|| Refusal::group_not_found(group))?)
        };
        match request.method {
            Method::GET => {
                let stored = self.polled(GROUP, found().await?).await?;
                Ok(Answer::json(StatusCode::OK, &render::group(&stored.value)))
            }
            Method::HEAD => match self.find(GROUP, &id).await? {
                Some(_) => Ok(Answer::empty(StatusCode::NO_CONTENT)),
                None => Ok(Answer::empty(StatusCode::NOT_FOUND)),
            },
            Method::DELETE => self.delete_group(request, &id, group).await,
            _ => self.write_group(request, &id, group).await,
        }
    }

    async fn write_group(
        &self,
        request: &CloudRequest,
        id: &ResourceId,
        group: &str,
    ) -> Result<Answer, Failure> {
        let given = body_of(&request.body)?;
        check::envelope(&given)?;
        retry_conflicts(|_| {
            let given = given.clone();
            async move {
                let old = self.find(GROUP, id).await?;
                if old.as_ref().is_some_and(|old| old.value.deleting) {
                    return Err(Refusal::group_being_deleted(group).into());
                }
                let mut body = match (request.method == Method::PATCH, &old) {
                    (true, None) => return Err(Refusal::group_not_found(group).into()),
                    (true, Some(old)) => old.value.body.clone(),
                    (false, _) => serde_json::Map::new(),
                };
                body.extend(
                    given
                        .into_iter()
                        .filter(|(name, _)| matches!(name.as_str(), "location" | "tags" | "managedBy")),
                );
                let before =
                    old.as_ref().and_then(|old| old.value.body.get("location")).and_then(Value::as_str);
                let location = body.get("location").and_then(Value::as_str).map(locations::normalise);
                let location =
                    location.or_else(|| before.map(str::to_owned)).ok_or_else(Refusal::location_required)?;
                if !locations::is_known(&location) {
                    return Err(Refusal::group_location(&location).into());
                }
                if let Some(before) = before.filter(|before| *before != location) {
                    return Err(Refusal::group_location_changed(group, before, &location).into());
                }
                body.insert("location".to_owned(), json!(location));
                let (now, creates) = (self.now(), old.is_none());
                let resource = Resource {
                    id: old.as_ref().map_or_else(|| id.to_string(), |old| old.value.id.clone()),
                    body,
                    created: old.as_ref().map_or(now, |old| old.value.created),
                    changed: now,
                    created_by: request.caller.object_id.clone(),
                    references: BTreeSet::new(),
                    secrets: Vec::new(),
                    operation: None,
                    deleting: false,
                };
                let change = match &old {
                    None => Change::Created,
                    Some(old) if old.value.body == resource.body => Change::Noop,
                    Some(_) => Change::Updated,
                };
                let shown = render::group(&resource);
                let op = self.write_op(GROUP, id, old.as_ref(), &resource)?;
                self.commit(id, vec![op]).await?;
                self.record(request, change, id);
                Ok(Answer::json(if creates { StatusCode::CREATED } else { StatusCode::OK }, &shown))
            }
        })
        .await
    }

    async fn delete_group(
        &self,
        request: &CloudRequest,
        id: &ResourceId,
        group: &str,
    ) -> Result<Answer, Failure> {
        retry_conflicts(|_| async move {
            let mut stored = self.find(GROUP, id).await?.ok_or_else(|| Refusal::group_not_found(group))?;
            if !stored.value.deleting {
                stored.value.deleting = true;
                let operation = Uuid::new_v4().to_string();
                self.hold_operation(request, id, &operation);
                stored.value.operation = Some(Operation { id: operation, settles: None, creates: false });
                let op = self.collection(GROUP).replace(&stored)?;
                self.commit(id, vec![op]).await?;
            }
            self.0.deletions.add(stored.value.id.clone());
            let operation =
                stored.value.operation.as_ref().map(|operation| operation.id.clone()).unwrap_or_default();
            let subscription = id.subscription().unwrap_or_default();
            let result = ResourceId::in_subscription(
                subscription,
                "Microsoft.Resources",
                &[("operationResults", &operation)],
            );
            let location = operations::follow(request, &result, &stored.value.id);
            Ok(Answer::empty(StatusCode::ACCEPTED).header("location", &location).retry_after(Some(1)))
        })
        .await
    }

    /// The groups of a subscription.
    pub(crate) async fn groups(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        let subscription = request.matched.subscription();
        let filter = request.query.get("$filter").map(tag_filter).transpose()?;
        let page = request.query.page_within(1000, 1000).map_err(|text| Refusal::parameter("$top", text))?;
        let query = Query::partition(CLOUD, partition_of(Some(subscription))).of_type(GROUP);
        let listed = self.collection(GROUP).page(&query, page).await?;
        let shown: Vec<Value> = listed
            .items
            .iter()
            .filter(|stored| filter.as_ref().is_none_or(|filter| filter.matches(&stored.value)))
            .map(|stored| render::group(&stored.value))
            .collect();
        Ok(paging::page(&request.caller, &shown, listed.next.as_ref()))
    }

    /// Creates a subscription, or completes it; used by the region's layout and by operators.
    pub async fn ensure_subscription(
        &self,
        id: &str,
        name: &str,
        tenant: &str,
    ) -> Result<SubscriptionFacts, Failure> {
        let resource_id = ResourceId::of_subscription(id);
        let old = self.find(SUBSCRIPTION, &resource_id).await?;
        if let Some(old) = old {
            return Ok(SubscriptionFacts::of(&resource_id, &old.value));
        }
        let namespaces: BTreeSet<&str> = types::all().map(|spec| spec.namespace).collect();
        let registered: Vec<&str> =
            namespaces.into_iter().chain(["Microsoft.Resources", "Microsoft.RedHatOpenShift"]).collect();
        let body = json!({"properties": {"displayName": name, "tenantId": tenant, "state": "Enabled", "providers": registered}});
        let now = self.now();
        let resource = Resource {
            id: resource_id.to_string(),
            body: object(body),
            created: now,
            changed: now,
            created_by: None,
            references: BTreeSet::new(),
            secrets: Vec::new(),
            operation: None,
            deleting: false,
        };
        let op = self.write_op(SUBSCRIPTION, &resource_id, None, &resource)?;
        self.commit(&resource_id, vec![op]).await?;
        self.index(SUBSCRIPTION, &resource);
        Ok(SubscriptionFacts::of(&resource_id, &resource))
    }

    /// Registers or unregisters a provider's namespace in a subscription.
    pub(crate) async fn set_registered(
        &self,
        subscription: &str,
        namespace: &str,
        registered: bool,
    ) -> Result<(), Failure> {
        let id = ResourceId::of_subscription(subscription);
        let key = aro_cloud_store::key_of(&id);
        let subscriptions = self.collection(SUBSCRIPTION);
        let changed = subscriptions.update(&key, |resource| {
            let providers = resource
                .body
                .get_mut("properties")
                .and_then(|p| p.get_mut("providers"))
                .and_then(Value::as_array_mut);
            let Some(providers) = providers else { return false };
            let is =
                |value: &Value| value.as_str().is_some_and(|known| known.eq_ignore_ascii_case(namespace));
            let known = providers.iter().any(is);
            match (known, registered) {
                (false, true) => providers.push(json!(namespace)),
                (true, false) => providers.retain(|value| !is(value)),
                _ => return false,
            }
            true
        });
        if let Some(stored) = changed.await? {
            self.index(SUBSCRIPTION, &stored.value);
        }
        Ok(())
    }
}

/// A filter by tag, as `az group list --tag` sends it.
pub(crate) struct TagFilter {
    name: Option<String>,
    value: Option<String>,
    pub resource_type: Option<String>,
    pub group: Option<String>,
    pub resource_name: Option<String>,
    pub location: Option<String>,
}

impl TagFilter {
    pub(crate) fn matches(&self, resource: &Resource) -> bool {
        let Some(name) = &self.name else { return true };
        let tags = resource.body.get("tags").and_then(Value::as_object);
        let found = tags.into_iter().flatten().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found
            .is_some_and(|(_, value)| self.value.as_ref().is_none_or(|wanted| value.as_str() == Some(wanted)))
    }
}

/// Reads the `$filter`s that Azure's own clients send: equalities joined by `and`.
pub(crate) fn tag_filter(text: &str) -> Result<TagFilter, Refusal> {
    let mut filter = TagFilter {
        name: None,
        value: None,
        resource_type: None,
        group: None,
        resource_name: None,
        location: None,
    };
    for term in text.split(" and ").map(str::trim).filter(|term| !term.is_empty()).take(16) {
        let words: Vec<&str> = term.splitn(3, ' ').collect();
        let value = words.get(2).map(|value| value.trim().trim_matches('\'').replace("''", "'"));
        let unsupported = || {
            let message = format!(
                "The filter '{text}' is not supported. Supported are equalities on tagName, tagValue, resourceType, resourceGroup, name and location, joined by 'and'."
            );
            Refusal::new(StatusCode::BAD_REQUEST, "InvalidFilterInQueryString", message)
        };
        let (Some(name), Some(operator), Some(value)) = (words.first(), words.get(1), value) else {
            return Err(unsupported());
        };
        if !operator.eq_ignore_ascii_case("eq") {
            return Err(unsupported());
        }
        let field = match name.to_lowercase().as_str() {
            "tagname" => &mut filter.name,
            "tagvalue" => &mut filter.value,
            "resourcetype" => &mut filter.resource_type,
            "resourcegroup" => &mut filter.group,
            "name" => &mut filter.resource_name,
            "location" => &mut filter.location,
            _ => return Err(unsupported()),
        };
        *field = Some(value);
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_az_are_read_and_others_refused() {
        let filter = tag_filter("tagName eq 'a''b' and tagValue eq 'c d'").unwrap();
        assert_eq!((filter.name.as_deref(), filter.value.as_deref()), (Some("a'b"), Some("c d")));
        assert_eq!(tag_filter("resourceType eq 'A/b'").unwrap().resource_type.as_deref(), Some("A/b"));
        for wrong in ["x", "name ne 'a'", "substringof('a', name)", "colour eq 'red'"] {
            assert!(tag_filter(wrong).is_err(), "{wrong}");
        }
    }
}
