//! Changes of documents as events.

use std::sync::Arc;

use aro_ocm::event::Event;
use aro_ocm::names::Environment;
use aro_ocm::{ClusterId, CredentialId, ExternalAuthId, Href, NodePoolId, Root, ShardId};
use aro_store::{Change, ChangePage, Cursor, DocKey, Document};
use serde::Serialize;

use crate::api::{View, shown_shard};
use crate::records::{
    BreakGlassRecord, CheckRecord, ClusterRecord, ExternalAuthRecord, NodePoolRecord, Record, Records,
    ShardRecord, UpgradePolicyRecord,
};

/// Renders changes as events.
pub(super) struct Renderer {
    records: Records,
    environment: Environment,
}

/// An object with its address.
struct Shown {
    href: String,
    kind: &'static str,
    generation: u64,
    object: Option<serde_json::Value>,
}

fn is<T: Record>(resource_type: &str) -> bool {
    resource_type == T::KIND.resource_type()
}

fn shown<T: Serialize>(href: &Href, kind: &'static str, generation: u64, object: &T) -> Option<Shown> {
    let object = serde_json::to_value(object).ok()?;
    Some(Shown { href: href.under(Root::AroHcp), kind, generation, object: Some(object) })
}

impl Renderer {
    pub(super) fn new(records: Records, environment: Environment) -> Self {
        Self { records, environment }
    }

    /// The events of a page that began at a cursor, each as JSON.
    pub(super) fn events(&self, start: &Cursor, page: &ChangePage) -> Vec<Arc<str>> {
        let last = page.changes.len().saturating_sub(1);
        let mut events = Vec::with_capacity(page.changes.len());
        for (index, change) in page.changes.iter().enumerate() {
            let Some(shown) = self.shown(change) else { continue };
            let event = Event {
                cursor: if index == last { page.next.as_str() } else { start.as_str() }.to_owned(),
                href: shown.href,
                kind: shown.kind.to_owned(),
                generation: shown.generation,
                deleted: shown.object.is_none(),
                object: shown.object,
            };
            // An event is made of JSON values: it can always be written.
            events.extend(serde_json::to_string(&event).ok().map(Arc::from));
        }
        events
    }

    fn shown(&self, change: &Change) -> Option<Shown> {
        match change {
            Change::Upsert(document) => self.object(document),
            Change::Delete { key, resource_type, resource_id, .. } => {
                let (kind, href) = deleted(key, resource_type, resource_id)?;
                Some(Shown { href: href.under(Root::AroHcp), kind, generation: 0, object: None })
            }
        }
    }

    /// A document that cannot be decoded is counted and logged, and is no event.
    fn object(&self, document: &Document) -> Option<Shown> {
        let view = View { root: Root::AroHcp, environment: &self.environment };
        let document = document.clone();
        match document.resource_type.as_str() {
            kind if is::<ClusterRecord>(kind) => {
                let record = self.records.clusters.decode(document).ok()?.value;
                shown(&Href::Cluster(record.id.clone()), "Cluster", record.generation, &view.cluster(&record))
            }
            kind if is::<NodePoolRecord>(kind) => {
                let record = self.records.pools.decode(document).ok()?.value;
                let href = Href::NodePool(record.cluster_id.clone(), record.id.clone());
                shown(&href, "NodePool", record.generation, &view.node_pool(&record))
            }
            kind if is::<ExternalAuthRecord>(kind) => {
                let record = self.records.auths.decode(document).ok()?.value;
                let href = Href::ExternalAuth(record.cluster_id.clone(), record.id.clone());
                shown(&href, "ExternalAuth", record.generation, &view.external_auth(&record))
            }
            kind if is::<UpgradePolicyRecord>(kind) => {
                let record = self.records.policies.decode(document).ok()?.value;
                let (kind, href) = policy(record.cluster_id.clone(), record.pool.clone(), record.id.clone());
                shown(&href, kind, 1, &view.policy(&record))
            }
            kind if is::<CheckRecord>(kind) => {
                let record = self.records.checks.decode(document).ok()?.value;
                let href = Href::InflightCheck(record.cluster_id.clone(), record.id.clone());
                shown(&href, "InflightCheck", 1, &view.check(&record))
            }
            kind if is::<BreakGlassRecord>(kind) => {
                let record = self.records.credentials.decode(document).ok()?.value;
                let href = Href::Credential(record.cluster_id.clone(), record.id.clone());
                // The credential itself is read by its address only.
                let object = aro_ocm::BreakGlassCredential { kubeconfig: None, ..view.credential(&record) };
                shown(&href, "BreakGlassCredential", 1, &object)
            }
            kind if is::<ShardRecord>(kind) => {
                let record = self.records.shards.decode(document).ok()?.value;
                shown(&Href::Shard(record.id), "ProvisionShard", 1, &shown_shard(&record))
            }
            _ => None,
        }
    }
}

fn policy(cluster: ClusterId, pool: Option<NodePoolId>, id: String) -> (&'static str, Href) {
    match pool {
        Some(pool) => ("NodePoolUpgradePolicy", Href::NodePoolUpgradePolicy(cluster, pool, id)),
        None => ("ControlPlaneUpgradePolicy", Href::ControlPlaneUpgradePolicy(cluster, id)),
    }
}

/// What a deleted document was.
fn deleted(key: &DocKey, resource_type: &str, resource_id: &str) -> Option<(&'static str, Href)> {
    let name = key.id.as_str().split_once('.').map_or("", |(_, name)| name);
    if is::<ShardRecord>(resource_type) {
        return Some(("ProvisionShard", Href::Shard(ShardId::parse(name).ok()?)));
    }
    let cluster = ClusterId::parse(key.partition.as_str()).ok()?;
    Some(match resource_type {
        kind if is::<ClusterRecord>(kind) => ("Cluster", Href::Cluster(cluster)),
        kind if is::<NodePoolRecord>(kind) => {
            ("NodePool", Href::NodePool(cluster, NodePoolId::parse(name).ok()?))
        }
        kind if is::<ExternalAuthRecord>(kind) => {
            ("ExternalAuth", Href::ExternalAuth(cluster, ExternalAuthId::parse(name).ok()?))
        }
        kind if is::<UpgradePolicyRecord>(kind) => {
            let mut path = resource_id.rsplit('/');
            let (id, of) = (path.next()?, path.next()?);
            let pool = if of == "-" { None } else { Some(NodePoolId::parse(of).ok()?) };
            policy(cluster, pool, id.to_owned())
        }
        kind if is::<CheckRecord>(kind) => ("InflightCheck", Href::InflightCheck(cluster, name.to_owned())),
        kind if is::<BreakGlassRecord>(kind) => {
            ("BreakGlassCredential", Href::Credential(cluster, CredentialId::parse(name).ok()?))
        }
        _ => return None,
    })
}
