//! Reads: one resource, lists of a type, generic lists.

use aro_arm::ResourceId;
use aro_arm_server::{Answer, Failure, paging};
use aro_cloud_store::{CLOUD, partition_of};
use aro_store::Query;
use http::StatusCode;
use serde_json::{Value, json};

use crate::authorization::BUILT_IN;
use crate::cloud::{Cloud, property};
use crate::groups::tag_filter;
use crate::provider::CloudRequest;
use crate::refusal::Refusal;
use crate::spec::{Inline, TypeSpec};
use crate::{references, render, types};

/// How many resources a page has.
const PAGE: usize = 1000;

impl Cloud {
    pub(crate) async fn get(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
    ) -> Result<Answer, Failure> {
        if spec.full == "Microsoft.Authorization/roleDefinitions"
            && let Some(role) = BUILT_IN.iter().find(|role| role.id.eq_ignore_ascii_case(id.name()))
        {
            return Ok(Answer::json(StatusCode::OK, &built_in(role)));
        }
        let stored = self.find(spec.full, id).await?;
        if stored.is_none()
            && let (Some(subscription), Some(group)) = (id.subscription(), id.resource_group())
        {
            self.find(crate::cloud::GROUP, &crate::cloud::group_id(subscription, group))
                .await?
                .ok_or_else(|| Refusal::group_not_found(group))?;
        }
        let stored = stored.ok_or_else(|| Refusal::resource_not_found(id))?;
        let stored = self.polled(spec.full, stored).await?;
        if request.caller.preconditions.is_unmodified(&stored.etag) {
            return Ok(Answer::empty(StatusCode::NOT_MODIFIED));
        }
        let shown = render::resource(spec, &stored.value, Some(&stored.etag), self.now());
        Ok(Answer::json(StatusCode::OK, &shown).etag(Some(&stored.etag)))
    }

    pub(crate) async fn get_inline(
        &self,
        spec: &'static TypeSpec,
        inline: &'static Inline,
        parent: &ResourceId,
        name: &str,
    ) -> Result<Answer, Failure> {
        let stored =
            self.find(spec.full, parent).await?.ok_or_else(|| Refusal::resource_not_found(parent))?;
        let stored = self.polled(spec.full, stored).await?;
        let shown = render::inline_item(inline, parent, &stored.value, name, Some(&stored.etag), self.now());
        let shown = shown.ok_or_else(|| Refusal::child_not_found(&parent.child(inline.member, name)))?;
        Ok(Answer::json(StatusCode::OK, &shown).etag(Some(&stored.etag)))
    }

    pub(crate) async fn list_inline(
        &self,
        spec: &'static TypeSpec,
        inline: &'static Inline,
        parent: &ResourceId,
    ) -> Result<Answer, Failure> {
        let stored =
            self.find(spec.full, parent).await?.ok_or_else(|| Refusal::resource_not_found(parent))?;
        let names =
            references::items(&stored.value.body, inline).filter_map(|item| item.get("name")?.as_str());
        let shown: Vec<Value> = names
            .filter_map(|name| {
                render::inline_item(inline, parent, &stored.value, name, Some(&stored.etag), self.now())
            })
            .collect();
        Ok(paging::whole(&shown))
    }

    /// The instances of a type below a prefix.
    pub(crate) async fn list(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        subscription: &str,
        prefix: Option<String>,
    ) -> Result<Answer, Failure> {
        let page = request.query.page_within(PAGE, PAGE).map_err(|text| Refusal::parameter("$top", text))?;
        let mut query = Query::partition(CLOUD, partition_of(Some(subscription))).of_type(spec.full);
        query.id_prefix = prefix;
        let listed = self.collection(spec.full).page(&query, page).await?;
        let now = self.now();
        let shown: Vec<Value> = listed
            .items
            .iter()
            .map(|stored| render::resource(spec, &stored.value, Some(&stored.etag), now))
            .collect();
        Ok(paging::page(&request.caller, &shown, listed.next.as_ref()))
    }

    /// Every record set of a zone.
    pub(crate) async fn record_sets(&self, zone: &ResourceId) -> Result<Answer, Failure> {
        let now = self.now();
        let below = self.below(zone.subscription(), &format!("{zone}/")).await?;
        let shown: Vec<Value> = below
            .iter()
            .map(|(spec, _, stored)| render::resource(spec, &stored.value, Some(&stored.etag), now))
            .collect();
        Ok(paging::whole(&shown))
    }

    /// The full name of a type that generic lists contain, the engine's own or another provider's.
    fn tracked_type(&self, full: &str) -> Option<&'static str> {
        match types::find(full) {
            Some(spec) => spec.is_tracked().then_some(spec.full),
            None => self.forwarded_type(full).map(|kind| kind.full),
        }
    }

    /// Resources of every tracked type, in a subscription or a group.
    pub(crate) async fn resources(
        &self,
        request: &CloudRequest,
        group: Option<&str>,
    ) -> Result<Answer, Failure> {
        let filter = tag_filter(request.query.get("$filter").unwrap_or_default())?;
        let page = request.query.page_within(PAGE, PAGE).map_err(|text| Refusal::parameter("$top", text))?;
        let subscription = request.matched.subscription();
        let mut query = Query::partition(CLOUD, partition_of(Some(subscription)));
        if let Some(group) = group.or(filter.group.as_deref()) {
            query = query.under(format!("/subscriptions/{subscription}/resourceGroups/{group}/"));
        }
        if let Some(full) = &filter.resource_type {
            query = query.of_type(self.tracked_type(full).unwrap_or(full));
        }
        let paged = self.0.store.query(&query, page).await?;
        let (now, expand) = (self.now(), request.query.get("$expand").unwrap_or_default());
        let mut shown = Vec::with_capacity(paged.items.len());
        for document in paged.items {
            let Some(full) = self.tracked_type(&document.resource_type) else { continue };
            // A document that cannot be read is counted and logged, and does not hide its neighbours.
            let Ok(stored) = self.collection(full).decode(document) else { continue };
            let resource = &stored.value;
            let same = |wanted: &Option<String>, given: &str| {
                wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(given))
            };
            let name = resource.id.rsplit('/').next().unwrap_or_default();
            let location = resource.body.get("location").and_then(Value::as_str).unwrap_or_default();
            if filter.matches(resource)
                && same(&filter.resource_name, name)
                && same(&filter.location, location)
            {
                shown.push(render::summary(full, resource, now, expand));
            }
        }
        Ok(paging::page(&request.caller, &shown, paged.next.as_ref()))
    }

    /// Role assignments at, above and (without `atScope()`) below a scope.
    pub(crate) async fn role_assignments(
        &self,
        request: &CloudRequest,
        scope: &str,
    ) -> Result<Answer, Failure> {
        let spec = spec_of("Microsoft.Authorization/roleAssignments")?;
        let filter = request.query.get("$filter").unwrap_or_default().to_lowercase();
        let at_scope = filter.contains("atscope()");
        let principal = between(&filter, "principalid eq '").or_else(|| between(&filter, "assignedto('"));
        let scope = scope.trim_end_matches('/').to_lowercase();
        let subscription = ResourceId::parse(&scope).ok().and_then(|id| id.subscription().map(str::to_owned));
        let query = Query::partition(CLOUD, partition_of(subscription.as_deref())).of_type(spec.full);
        let listed = self.collection(spec.full).all(&query).await?;
        let mut shown = Vec::new();
        for stored in &listed.items {
            let at = scope_of(&stored.value.id);
            let above = scope == at || scope.strip_prefix(&at).is_some_and(|rest| rest.starts_with('/'));
            let below = at.strip_prefix(&scope).is_some_and(|rest| rest.starts_with('/'));
            let of_principal = principal
                .as_ref()
                .is_none_or(|wanted| property(&stored.value, "principalId").eq_ignore_ascii_case(wanted));
            if of_principal && (above || (below && !at_scope)) {
                shown.push(self.shown_at_scope(spec, stored));
            }
        }
        Ok(paging::whole(&shown))
    }

    /// Role definitions that can be assigned at a scope.
    pub(crate) async fn role_definitions(
        &self,
        request: &CloudRequest,
        scope: &str,
    ) -> Result<Answer, Failure> {
        let spec = spec_of("Microsoft.Authorization/roleDefinitions")?;
        let filter = request.query.get("$filter").unwrap_or_default();
        let name = between(&filter.to_lowercase(), "rolename eq '");
        let kind = between(&filter.to_lowercase(), "type eq '");
        let mut shown: Vec<Value> = BUILT_IN.iter().map(built_in).collect();
        let subscription = ResourceId::parse(scope).ok().and_then(|id| id.subscription().map(str::to_owned));
        let query = Query::partition(CLOUD, partition_of(subscription.as_deref())).of_type(spec.full);
        for stored in &self.collection(spec.full).all(&query).await?.items {
            shown.push(self.shown_at_scope(spec, stored));
        }
        shown.retain(|role| {
            let of = |member: &str| role["properties"][member].as_str().unwrap_or_default().to_lowercase();
            name.as_ref().is_none_or(|name| of("roleName") == *name)
                && kind.as_ref().is_none_or(|kind| of("type") == *kind)
        });
        Ok(paging::whole(&shown))
    }

    /// An assignment or definition: its type is the extension's, its properties name the scope.
    pub(crate) fn shown_at_scope(&self, spec: &TypeSpec, stored: &crate::cloud::Stored) -> Value {
        let mut shown = render::resource(spec, &stored.value, None, self.now());
        let id = &stored.value.id;
        let at = id.to_lowercase().rfind("/providers/microsoft.authorization/").unwrap_or(0);
        if let Some(properties) = shown.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(
                "scope".to_owned(),
                json!(id.get(..at).filter(|scope| !scope.is_empty()).unwrap_or("/")),
            );
            properties.insert("createdOn".to_owned(), json!(stored.value.created.to_string()));
            properties.insert("updatedOn".to_owned(), json!(stored.value.changed.to_string()));
            properties.insert("createdBy".to_owned(), json!(stored.value.created_by));
        }
        shown
    }
}

fn spec_of(full: &str) -> Result<&'static TypeSpec, Failure> {
    types::find(full).ok_or(Failure::NoRoute)
}

fn scope_of(id: &str) -> String {
    let lower = id.to_lowercase();
    let at = lower.rfind("/providers/microsoft.authorization/").unwrap_or(0);
    lower.get(..at).unwrap_or_default().to_owned()
}

/// The text between a beginning and the next quote.
fn between(text: &str, beginning: &str) -> Option<String> {
    let (_, rest) = text.split_once(beginning)?;
    rest.split_once('\'').map(|(value, _)| value.to_owned())
}

fn built_in(role: &crate::authorization::BuiltInRole) -> Value {
    json!({
        "id": format!("/providers/Microsoft.Authorization/roleDefinitions/{}", role.id),
        "name": role.id,
        "type": "Microsoft.Authorization/roleDefinitions",
        "properties": {
            "roleName": role.name, "type": "BuiltInRole", "description": role.name,
            "assignableScopes": ["/"], "permissions": [role.permission()],
        },
    })
}
