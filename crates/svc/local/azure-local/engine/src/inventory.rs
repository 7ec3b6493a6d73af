//! Everything that the cloud holds, for its operator: across tenants and subscriptions, without role checks.

use aro_arm::ResourceId;
use aro_arm_server::Failure;
use aro_cloud_store::{CLOUD, Resource, partition_of};
use aro_store::{Page, PageToken, Query};
use serde_json::Value;

use crate::cloud::{Cloud, GROUP, SUBSCRIPTION};
use crate::{render, types};

/// Which resources are listed.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    pub subscription: Option<String>,
    /// A group of the subscription.
    pub group: Option<String>,
    /// Where the last page ended.
    pub after: Option<String>,
    pub limit: usize,
}

/// A page of resources as their GET shows them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InventoryPage {
    pub resources: Vec<Value>,
    pub next: Option<String>,
}

impl Cloud {
    /// Lists resources, groups and subscriptions in the order of their ids.
    pub async fn inventory(&self, asked: &Inventory) -> Result<InventoryPage, Failure> {
        let query = match (&asked.subscription, &asked.group) {
            (None, _) => Query::all(CLOUD),
            (Some(subscription), None) => Query::partition(CLOUD, partition_of(Some(subscription))),
            (Some(subscription), Some(group)) => Query::partition(CLOUD, partition_of(Some(subscription)))
                .under(format!("{}/", crate::cloud::group_id(subscription, group))),
        };
        let page = Page { size: asked.limit, after: asked.after.as_deref().map(PageToken::new) };
        let paged = self.0.store.query(&query, page).await?;
        let mut resources = Vec::with_capacity(paged.items.len());
        for document in paged.items {
            let full = document.resource_type.clone();
            // An unreadable document is counted and logged where it is decoded.
            if let Ok(stored) = self.collection(&full).decode(document) {
                resources.push(self.shown(&full, &stored.value));
            }
        }
        Ok(InventoryPage { resources, next: paged.next.map(|token| token.as_str().to_owned()) })
    }

    /// One resource, also a child inside of its parent's document.
    pub async fn find_anywhere(&self, id: &ResourceId) -> Result<Option<Value>, Failure> {
        let full = match (id.namespace(), id.resource_group()) {
            (None, Some(_)) => GROUP.to_owned(),
            (None, None) => SUBSCRIPTION.to_owned(),
            (Some(_), _) => id.resource_type(),
        };
        if full == GROUP || full == SUBSCRIPTION || types::find(&full).is_some() {
            let stored = self.find(&full, id).await?;
            return Ok(stored.map(|stored| self.shown(&full, &stored.value)));
        }
        let Some(parent) = id.parent() else { return Ok(None) };
        let Some(spec) = types::find(&parent.resource_type()) else { return Ok(None) };
        let Some(inline) = spec.inline.iter().find(|inline| inline.full.eq_ignore_ascii_case(&full)) else {
            return Ok(None);
        };
        let Some(stored) = self.find(spec.full, &parent).await? else { return Ok(None) };
        Ok(render::inline_item(inline, &parent, &stored.value, id.name(), Some(&stored.etag), self.now()))
    }

    fn shown(&self, full: &str, resource: &Resource) -> Value {
        match types::find(full) {
            Some(spec) => render::resource(spec, resource, None, self.now()),
            None if full == GROUP => render::group(resource),
            None => {
                let mut body = resource.body.clone();
                body.insert("id".to_owned(), resource.id.clone().into());
                body.insert("type".to_owned(), full.into());
                Value::Object(body)
            }
        }
    }
}
