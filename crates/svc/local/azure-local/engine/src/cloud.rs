//! The state of the local cloud: documents in the store, and in memory the indexes that decisions need.
//!
//! One process writes a cloud's documents. The indexes (references, grants, unique names, addresses, subscriptions) are
//! derived from the documents when the process starts and kept in step with every write.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm_server::Failure;
use aro_base::{SharedClock, SignedDuration, Timestamp};
use aro_cloud_store::{CLOUD, Resource, key_of, kind_of};
use aro_control::Queue;
use aro_store::{
    Batch, Collection, CollectionError, Names, Op, Page, Query, SharedStore, Typed, UnreadableDocuments,
};
use http::Method;
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::authorization::{Assignment, Grants, Permission};
use crate::deleted_vaults::DELETED_VAULT;
use crate::directory::Directory;
use crate::faults::{FaultHooks, Target};
use crate::graph::Graph;
use crate::mutations::Mutations;
use crate::refusal::Refusal;
use crate::spec::{Effect, TypeSpec};
use crate::stuck::StuckOperations;
use crate::types;

/// The types of documents that are no resource type of a provider.
pub(crate) const SUBSCRIPTION: &str = "Microsoft.Resources/subscriptions";
pub(crate) const GROUP: &str = "Microsoft.Resources/resourceGroups";

/// What can be configured.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a long-running operation takes.
    pub operation_time: Duration,
    /// How much memory the log of mutations may take.
    pub mutation_log: usize,
    /// Types of resource providers that are services of their own.
    pub forwarded: &'static [ForwardedType],
    /// Faults inside of the engine.
    pub faults: Arc<dyn FaultHooks>,
}

/// A type that another service serves behind ARM.
#[derive(Debug, Clone, Copy)]
pub struct ForwardedType {
    pub namespace: &'static str,
    /// The type below the namespace.
    pub kind: &'static str,
    /// The full type.
    pub full: &'static str,
    /// Its api-versions, oldest first.
    pub versions: &'static [&'static str],
}

/// The local cloud. Cheap to clone.
#[derive(Clone)]
pub struct Cloud(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub store: SharedStore,
    pub clock: SharedClock,
    pub directory: Arc<dyn Directory>,
    pub unreadable: UnreadableDocuments,
    pub options: Options,
    pub graph: Graph,
    pub grants: Grants,
    pub mutations: Mutations,
    /// Subscriptions by id in lower case.
    pub subscriptions: RwLock<BTreeMap<String, SubscriptionFacts>>,
    /// Names that are unique everywhere: `(full type, name)` in lower case, to the id.
    pub names: Mutex<HashMap<(&'static str, String), String>>,
    pub addresses: Mutex<HashSet<Ipv4Addr>>,
    /// Instances by subscription, location and type, for quotas.
    pub counts: Mutex<HashMap<(String, String, &'static str), u32>>,
    /// Ids of groups and resources whose deletion is under way.
    pub deletions: Queue<String>,
    /// Operations that a fault keeps from ending.
    pub stuck: StuckOperations,
}

/// A subscription as requests need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionFacts {
    pub id: String,
    pub name: String,
    pub tenant: String,
    /// The namespaces that are registered, in lower case.
    pub registered: BTreeSet<String>,
}

/// A resource with its document.
pub(crate) type Stored = Typed<Resource>;

impl Cloud {
    /// Opens the cloud: reads every document once.
    pub async fn open(
        store: SharedStore,
        clock: SharedClock,
        directory: Arc<dyn Directory>,
        unreadable: UnreadableDocuments,
        options: Options,
    ) -> Result<Self, CollectionError> {
        let mutations = Mutations::within(options.mutation_log);
        let cloud = Self(Arc::new(Inner {
            store,
            clock,
            directory,
            unreadable,
            options,
            graph: Graph::default(),
            grants: Grants::default(),
            mutations,
            subscriptions: RwLock::default(),
            names: Mutex::default(),
            addresses: Mutex::default(),
            counts: Mutex::default(),
            deletions: Queue::new(),
            stuck: StuckOperations::default(),
        }));
        cloud.load().await?;
        Ok(cloud)
    }

    async fn load(&self) -> Result<(), CollectionError> {
        const PAGE: usize = 500;
        let mut page = Page::first(PAGE);
        loop {
            let paged = self.0.store.query(&Query::all(CLOUD), page).await?;
            for document in paged.items {
                let full = document.resource_type.clone();
                // One unreadable document is counted and logged, and does not keep the others from being served.
                if let Ok(read) = self.collection(&full).decode(document) {
                    self.index(&full, &read.value);
                }
            }
            match paged.next {
                Some(next) => page = Page { size: PAGE, after: Some(next) },
                None => return Ok(()),
            }
        }
    }

    /// Takes a document into the indexes.
    pub(crate) fn index(&self, full: &str, resource: &Resource) {
        let Ok(id) = ResourceId::parse(&resource.id) else { return };
        if resource.deleting {
            self.0.deletions.add(resource.id.clone());
        }
        if full == SUBSCRIPTION {
            let facts = SubscriptionFacts::of(&id, resource);
            self.0.subscriptions.write().insert(facts.id.to_lowercase(), facts);
            return;
        }
        if full == DELETED_VAULT {
            self.index_deleted_vault(&resource.id, property(resource, "vaultId"));
            return;
        }
        let Some(spec) = types::find(full) else { return };
        self.0.graph.load(&id.to_lower(), &resource.references);
        if spec.naming.unique_everywhere.is_some() {
            let key = (spec.full, id.name().to_lowercase());
            self.0.names.lock().insert(key, resource.id.clone());
        }
        if let Some(address) = address_of(resource) {
            self.0.addresses.lock().insert(address);
        }
        self.count(spec, &id, resource, 1);
        if spec.effect == Effect::Authorization {
            self.grant(spec, &id, resource, resource.created);
        }
    }

    /// Takes a deleted document out of the indexes.
    pub(crate) fn unindex(&self, spec: &TypeSpec, id: &ResourceId, resource: &Resource) {
        if spec.naming.unique_everywhere.is_some() {
            let mut names = self.0.names.lock();
            let key = (spec.full, id.name().to_lowercase());
            // A deleted vault keeps its name.
            if names.get(&key).is_some_and(|known| known.eq_ignore_ascii_case(&resource.id)) {
                names.remove(&key);
            }
        }
        if let Some(address) = address_of(resource) {
            self.0.addresses.lock().remove(&address);
        }
        self.count(spec, id, resource, -1);
        match spec.full {
            "Microsoft.Authorization/roleAssignments" => {
                self.0.grants.unassign(property(resource, "principalId"), &id.to_lower());
            }
            "Microsoft.Authorization/roleDefinitions" => self.0.grants.undefine(id.name()),
            _ => {}
        }
    }

    pub(crate) fn count(&self, spec: &TypeSpec, id: &ResourceId, resource: &Resource, by: i32) {
        if spec.quota.is_none() {
            return;
        }
        let location = resource.body.get("location").and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = (id.subscription().unwrap_or_default().to_lowercase(), location, spec.full);
        let mut counts = self.0.counts.lock();
        let count = counts.entry(key).or_default();
        *count = count.saturating_add_signed(by);
    }

    /// Makes a role assignment or definition count, from a moment on.
    pub(crate) fn grant(&self, spec: &TypeSpec, id: &ResourceId, resource: &Resource, from: Timestamp) {
        if spec.full == "Microsoft.Authorization/roleAssignments" {
            self.0.grants.assign(assignment_of(id, resource, from));
        } else {
            let permissions =
                resource.properties().and_then(|properties| properties.get("permissions")).cloned();
            let permissions: Vec<Permission> =
                permissions.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
            self.0.grants.define(id.name(), permissions);
        }
    }

    /// The documents of a type.
    pub(crate) fn collection(&self, full: &str) -> Collection<Resource> {
        let known = types::find(full).map(|spec| spec.full);
        let known = known.or_else(|| self.forwarded_type(full).map(|kind| kind.full));
        let full = known.unwrap_or(match full {
            GROUP => GROUP,
            DELETED_VAULT => DELETED_VAULT,
            _ => SUBSCRIPTION,
        });
        Collection::new(self.0.store.clone(), CLOUD, kind_of(full), self.0.unreadable.clone())
    }

    pub(crate) async fn find(&self, full: &str, id: &ResourceId) -> Result<Option<Stored>, Failure> {
        Ok(self.collection(full).find(&key_of(id)).await?)
    }

    /// A group that exists and is not being deleted.
    pub(crate) async fn live_group(&self, subscription: &str, group: &str) -> Result<Stored, Failure> {
        let id = group_id(subscription, group);
        let found = self.find(GROUP, &id).await?;
        let stored = found.ok_or_else(|| Refusal::group_not_found(group))?;
        match stored.value.deleting {
            true => Err(Refusal::group_being_deleted(group).into()),
            false => Ok(stored),
        }
    }

    /// The operation that creates or replaces a document.
    pub(crate) fn write_op(
        &self,
        full: &str,
        id: &ResourceId,
        old: Option<&Stored>,
        resource: &Resource,
    ) -> Result<Op, Failure> {
        let collection = self.collection(full);
        Ok(match old {
            None => {
                let names = Names { id: key_of(id).id, resource_id: id.to_string() };
                collection.create(names, resource)?
            }
            // The old value is left out: it may be large.
            Some(old) => collection.replace(&Typed {
                value: resource.clone(),
                key: old.key.clone(),
                resource_id: old.resource_id.clone(),
                etag: old.etag.clone(),
                version: old.version,
                modified: old.modified,
                expires: old.expires,
            })?,
        })
    }

    pub(crate) async fn commit(&self, id: &ResourceId, ops: Vec<Op>) -> Result<(), Failure> {
        let key = key_of(id);
        let batch = ops.into_iter().fold(Batch::new(CLOUD, key.partition), Batch::with);
        self.0.store.write(batch).await?;
        Ok(())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// When an operation that starts now ends.
    pub(crate) fn settles(&self) -> Timestamp {
        let time = SignedDuration::try_from(self.0.options.operation_time).unwrap_or(SignedDuration::ZERO);
        self.now().checked_add(time).unwrap_or_else(|_| self.now())
    }

    /// When a role assignment that is made now takes effect.
    pub(crate) fn effective(&self, id: &ResourceId) -> Timestamp {
        let delay = self.0.options.faults.assignment_delay(Target { method: &Method::PUT, id });
        let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::ZERO);
        self.now().checked_add(delay).unwrap_or_else(|_| self.now())
    }

    /// A subscription that exists.
    pub fn subscription(&self, id: &str) -> Result<SubscriptionFacts, Refusal> {
        let found = self.0.subscriptions.read().get(&id.to_lowercase()).cloned();
        found.ok_or_else(|| Refusal::subscription_not_found(id))
    }

    /// Every subscription.
    pub fn subscriptions(&self) -> Vec<SubscriptionFacts> {
        self.0.subscriptions.read().values().cloned().collect()
    }

    /// A resource of a type whose names are unique everywhere.
    pub async fn find_named(&self, full: &str, name: &str) -> Result<Option<Resource>, CollectionError> {
        let Some(spec) = types::find(full) else { return Ok(None) };
        let id = self.0.names.lock().get(&(spec.full, name.to_lowercase())).cloned();
        let id = id.and_then(|id| ResourceId::parse(&id).ok()).filter(|id| id.is_type(spec.full));
        let Some(id) = id else { return Ok(None) };
        let found = self.collection(spec.full).find(&key_of(&id)).await?;
        Ok(found.map(|stored| stored.value).filter(|resource| !resource.deleting))
    }

    /// Who may do what.
    pub fn grants(&self) -> &Grants {
        &self.0.grants
    }

    /// The log of mutations.
    pub fn mutations(&self) -> &Mutations {
        &self.0.mutations
    }

    /// A free public address for a resource: the same for the same resource, as long as it is free. From the range that is
    /// reserved for benchmarks, which no network routes.
    pub(crate) fn free_address(&self, stable: Uuid) -> Option<Ipv4Addr> {
        const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 1]);
        const COUNT: u32 = (1 << 17) - 2;
        let mut addresses = self.0.addresses.lock();
        let start = u32::try_from(stable.as_u128() % u128::from(COUNT)).unwrap_or(0);
        let candidates = (0..COUNT).map(|step| Ipv4Addr::from(FIRST + (start + step) % COUNT));
        let free = candidates.into_iter().find(|address| !addresses.contains(address))?;
        addresses.insert(free);
        Some(free)
    }
}

impl SubscriptionFacts {
    pub(crate) fn of(id: &ResourceId, resource: &Resource) -> Self {
        let text = |name: &str| property(resource, name).to_owned();
        let registered = resource.properties().and_then(|properties| properties.get("providers"));
        let registered = registered.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        Self {
            id: id.subscription().unwrap_or_default().to_owned(),
            name: text("displayName"),
            tenant: text("tenantId"),
            registered: registered.map(str::to_lowercase).collect(),
        }
    }
}

/// The id of a resource group.
pub fn group_id(subscription: &str, group: &str) -> ResourceId {
    ResourceId::from_parts(Some(subscription), Some(group), None, [])
}

/// A text among the properties; empty if there is none.
pub(crate) fn property<'r>(resource: &'r Resource, name: &str) -> &'r str {
    resource
        .properties()
        .and_then(|properties| properties.get(name))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn address_of(resource: &Resource) -> Option<Ipv4Addr> {
    property(resource, "ipAddress").parse().ok()
}

/// What an assignment at a scope grants.
pub(crate) fn assignment_of(id: &ResourceId, resource: &Resource, effective: Timestamp) -> Assignment {
    let lower = id.to_lower();
    let scope = lower.rfind("/providers/microsoft.authorization/").and_then(|at| lower.get(..at));
    Assignment {
        scope: scope.unwrap_or_default().to_owned(),
        role: role_of(property(resource, "roleDefinitionId")),
        principal: property(resource, "principalId").to_lowercase(),
        effective,
        id: lower,
    }
}

/// The GUID at the end of a role definition's id, in lower case.
pub(crate) fn role_of(definition: &str) -> String {
    definition.rsplit('/').next().unwrap_or_default().to_lowercase()
}

/// An empty object, for bodies without members.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
