//! PUT and PATCH of resources, and of children inside of them.
//!
//! Each attempt reads, decides and commits one batch: the resource, with a check of the group and the parent it was decided on.
//! What another request changed in between makes the batch fail, and the request is decided again.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::net::Ipv4Addr;

use aro_arm::{ResourceId, merge};
use aro_arm_server::{Answer, Failure, retry_conflicts};
use aro_cloud_store::Resource;
use aro_store::Op;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::cloud::{Cloud, Stored, assignment_of, object, role_of};
use crate::compute::Draft;
use crate::deleted_vaults::{VAULT, is_deleted_vault, recovers};
use crate::directory::DirectoryError;
use crate::faults::Target;
use crate::graph::Held;
use crate::mutations::{Cause, Change};
use crate::provider::{CloudRequest, Permissions as _};
use crate::references::{self, Found};
use crate::refusal::Refusal;
use crate::spec::{Effect, Home, Inline, Placement, TypeSpec, envelope};
use crate::{check, keys, locations, operations, render, types};

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// What a write was decided on and what it does.
struct Decided {
    resource: Resource,
    old: Option<Stored>,
    checks: Vec<Op>,
    new_references: BTreeSet<String>,
    gone_references: BTreeSet<String>,
    removed_ids: BTreeSet<String>,
    /// A name or an address that was reserved and is released if the write does not happen.
    reserved_name: bool,
    address: Option<Ipv4Addr>,
}

impl Cloud {
    /// PUT or PATCH of a resource with a document of its own.
    pub(crate) async fn write(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
    ) -> Result<Answer, Failure> {
        let body = body_of(&request.body)?;
        check::name(id.name(), &spec.naming)?;
        if request.method == Method::PUT && recovers(spec, &body) {
            return self.recover_vault(request, spec, id).await;
        }
        retry_conflicts(|_| {
            let body = body.clone();
            async move {
                let old = self.find(spec.full, id).await?;
                let body = match (request.method == Method::PATCH, &old) {
                    (false, _) => body,
                    (true, Some(old)) => patched(spec, &old.value.body, body)?,
                    (true, None) => return Err(Refusal::resource_not_found(id).into()),
                };
                let (stored, change) = self.put(request, spec, id, old, body, None).await?;
                let creates = change == Change::Created;
                let shown = render::resource(spec, &stored, None, self.now());
                Ok(operations::accepted(request, spec, &stored, shown, creates))
            }
        })
        .await
    }

    /// PUT of a child that lives inside of its parent's document.
    pub(crate) async fn write_inline(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        inline: &'static Inline,
        parent: &ResourceId,
        name: &str,
    ) -> Result<Answer, Failure> {
        let mut item = body_of(&request.body)?;
        item.insert("name".to_owned(), json!(name));
        item.retain(|member, _| matches!(member.as_str(), "name" | "properties" | "zones"));
        let item = Value::Object(item);
        retry_conflicts(|_| {
            let item = item.clone();
            async move {
                let old = self.find(spec.full, parent).await?;
                let old = old.ok_or_else(|| Refusal::resource_not_found(parent))?;
                let mut body = old.value.body.clone();
                let creates = replace_item(&mut body, inline, name, Some(item));
                let child = request.matched.resource_id();
                let logged = (&child, creates.then_some(Change::Created));
                let (stored, _) = self.put(request, spec, parent, Some(old), body, Some(logged)).await?;
                let shown = render::inline_item(inline, parent, &stored, name, None, self.now());
                Ok(operations::accepted(request, spec, &stored, shown.unwrap_or_default(), creates))
            }
        })
        .await
    }

    /// Removes a child that lives inside of its parent's document.
    pub(crate) async fn delete_inline(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        inline: &'static Inline,
        parent: &ResourceId,
        name: &str,
    ) -> Result<Answer, Failure> {
        retry_conflicts(|_| async move {
            let child = request.matched.resource_id();
            let gone = || {
                self.record(request, Change::Noop, &child);
                Ok(Answer::empty(StatusCode::NO_CONTENT))
            };
            let Some(old) = self.find(spec.full, parent).await? else { return gone() };
            let mut body = old.value.body.clone();
            if replace_item(&mut body, inline, name, None) {
                return gone();
            }
            let logged = (&child, Some(Change::Deleted));
            let (stored, _) = self.put(request, spec, parent, Some(old), body, Some(logged)).await?;
            Ok(operations::deleted(request, spec, &stored, self.now()))
        })
        .await
    }

    /// Decides and commits one write; returns the resource and what became of it. `child` is logged in place of the resource: a
    /// part of it, and what became of that if it is not the same.
    async fn put(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
        old: Option<Stored>,
        body: Map<String, Value>,
        child: Option<(&ResourceId, Option<Change>)>,
    ) -> Result<(Resource, Change), Failure> {
        let stable = Uuid::new_v5(&Uuid::NAMESPACE_URL, id.to_lower().as_bytes());
        let wants_address = spec.full == "Microsoft.Network/publicIPAddresses" && old.is_none();
        let address = wants_address.then(|| self.free_address(stable)).flatten();
        let decided = self.decide(request, spec, id, old, body, (stable, address)).await;
        let decided = decided.inspect_err(|_| self.release_address(address))?;
        let change = match &decided.old {
            None => Change::Created,
            Some(old) if old.value.body == decided.resource.body => Change::Noop,
            Some(_) => Change::Updated,
        };
        let from = id.to_lower();
        let reserved = self.0.graph.reserve(&from, &decided.new_references, &decided.removed_ids);
        let committed = match reserved {
            Ok(()) => {
                let committed = self.commit_decided(spec, id, &decided).await;
                match &committed {
                    Ok(()) => self.0.graph.commit(&from, &decided.gone_references, &decided.removed_ids),
                    Err(_) => self.0.graph.release(&from, &decided.new_references, &decided.removed_ids),
                }
                committed
            }
            Err(held) => Err(refusal_of(held, id, spec).into()),
        };
        if let Err(error) = committed {
            self.release(spec, id, &decided);
            return Err(error);
        }
        let (logged, outcome) = child.map_or((id, None), |(child, outcome)| (child, outcome));
        self.record(request, outcome.unwrap_or(change), logged);
        self.finish(spec, id, &decided.resource, change == Change::Created).await?;
        Ok((decided.resource, change))
    }

    async fn commit_decided(
        &self,
        spec: &TypeSpec,
        id: &ResourceId,
        decided: &Decided,
    ) -> Result<(), Failure> {
        let mut ops = decided.checks.clone();
        ops.push(self.write_op(spec.full, id, decided.old.as_ref(), &decided.resource)?);
        self.commit(id, ops).await
    }

    fn release(&self, spec: &TypeSpec, id: &ResourceId, decided: &Decided) {
        if decided.reserved_name {
            self.0.names.lock().remove(&(spec.full, id.name().to_lowercase()));
        }
        self.release_address(decided.address);
    }

    fn release_address(&self, address: Option<Ipv4Addr>) {
        if let Some(address) = address {
            self.0.addresses.lock().remove(&address);
        }
    }

    pub(crate) fn record(&self, request: &CloudRequest, change: Change, id: &ResourceId) {
        self.0.mutations.record(self.now(), change, id.as_str(), cause_of(request));
    }

    /// Everything that is decided before anything is written.
    async fn decide(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
        old: Option<Stored>,
        body: Map<String, Value>,
        (stable, address): (Uuid, Option<Ipv4Addr>),
    ) -> Result<Decided, Failure> {
        let subscription =
            id.subscription().map(|subscription| self.subscription(subscription)).transpose()?;
        let mut checks = Vec::new();
        if let (Home::Group, Some(subscription), Some(group)) =
            (spec.home, id.subscription(), id.resource_group())
        {
            let group = self.live_group(subscription, group).await?;
            checks.push(self.collection(crate::cloud::GROUP).check(&group));
        }
        let parent = match id.parent().filter(|_| spec.is_child()) {
            None => None,
            Some(parent) => Some(self.live_parent(&parent).await?),
        };
        if let Some(parent) = &parent {
            checks.push(self.collection(crate::cloud::GROUP).check(parent));
        }
        if old.as_ref().is_some_and(|old| old.value.deleting) {
            return Err(Refusal::being_deleted(id).into());
        }
        let etag = old.as_ref().map(|old| &old.etag);
        request.caller.preconditions.check_write(etag).map_err(Refusal::precondition)?;

        let mut body = envelope(body);
        check::envelope(&body)?;
        let location = Self::place(spec, id, &mut body, old.as_ref(), parent.as_ref())?;
        let mut whole = Value::Object(body);
        check::members(&mut whole, spec.members)?;
        let mut body = object(whole);
        references::check_inline(&body, spec)?;

        let tenant = subscription.map(|subscription| subscription.tenant).unwrap_or_default();
        let identity = match spec.effect {
            Effect::Identity => {
                Some(self.0.directory.register_identity(&tenant, &id.to_lower(), id.name()).await?)
            }
            _ => None,
        };
        let mut draft = Draft {
            id,
            body: &mut body,
            old: old.as_ref().map(|old| &old.value.body),
            location: &location,
            tenant: &tenant,
            stable,
            identity: identity.as_ref(),
            address,
        };
        (spec.compute)(&mut draft)?;
        let found = references::of_body(&body, spec)?;
        self.check_references(request, spec, id, &body, &found).await?;
        self.check_authorization(spec, id, &body, &tenant).await?;
        if spec.full == VAULT && old.is_none() {
            self.expire_deleted_vault(id.name()).await?;
        }
        let reserved_name = self.reserve(spec, id, old.is_none(), &location)?;

        let now = self.now();
        let operation = spec.long_running.then(|| self.start_operation(request, id, old.is_none()));
        let targets: BTreeSet<String> = found.iter().map(|found| found.target.to_lower()).collect();
        let before = old.as_ref().map(|old| old.value.references.clone()).unwrap_or_default();
        let ids = |body: &Map<String, Value>| -> BTreeSet<String> {
            references::inline_ids(id, body, spec).into_iter().map(|(id, ..)| id).collect()
        };
        let old_ids = old.as_ref().map(|old| ids(&old.value.body)).unwrap_or_default();
        let removed_ids = old_ids.difference(&ids(&body)).cloned().collect();
        let created_by = match &old {
            Some(old) => old.value.created_by.clone(),
            None => request.caller.object_id.clone(),
        };
        Ok(Decided {
            new_references: targets.difference(&before).cloned().collect(),
            gone_references: before.difference(&targets).cloned().collect(),
            removed_ids,
            resource: Resource {
                id: old.as_ref().map_or_else(|| id.to_string(), |old| old.value.id.clone()),
                body,
                created: old.as_ref().map_or(now, |old| old.value.created),
                changed: now,
                created_by,
                references: targets,
                secrets: keys::complete(spec, old.as_ref(), now)?,
                operation,
                deleting: false,
            },
            old,
            checks,
            reserved_name,
            address,
        })
    }

    async fn live_parent(&self, parent: &ResourceId) -> Result<Stored, Failure> {
        let found = self.find(&parent.resource_type(), parent).await?;
        let found = found.ok_or_else(|| Refusal::parent_not_found(parent))?;
        match found.value.deleting {
            true => Err(Refusal::being_deleted(parent).into()),
            false => Ok(found),
        }
    }

    /// Checks and normalises `location`; returns the location of the resource or of its parent.
    fn place(
        spec: &TypeSpec,
        id: &ResourceId,
        body: &mut Map<String, Value>,
        old: Option<&Stored>,
        parent: Option<&Stored>,
    ) -> Result<String, Refusal> {
        let text = |body: &Map<String, Value>| {
            body.get("location").and_then(Value::as_str).map(locations::normalise)
        };
        let before = old.and_then(|old| text(&old.value.body));
        if spec.placement == Placement::None {
            body.remove("location");
            body.remove("tags");
            return Ok(parent.and_then(|parent| text(&parent.value.body)).unwrap_or_default());
        }
        let given = text(body).filter(|given| !given.is_empty()).or_else(|| before.clone());
        let given = given.ok_or_else(Refusal::location_required)?;
        let available = match spec.placement {
            Placement::Global => given == "global",
            _ => locations::is_known(&given),
        };
        if !available {
            let offered =
                if spec.placement == Placement::Global { "global".to_owned() } else { locations::names() };
            return Err(Refusal::location_not_available(&given, spec.full, &offered));
        }
        if let Some(before) = before.filter(|before| *before != given) {
            return Err(Refusal::location_changed(id, &before, &given));
        }
        body.insert("location".to_owned(), json!(given));
        Ok(given)
    }

    /// Whether what a body refers to exists and the caller may use it.
    async fn check_references(
        &self,
        request: &CloudRequest,
        spec: &TypeSpec,
        id: &ResourceId,
        body: &Map<String, Value>,
        found: &[Found],
    ) -> Result<(), Failure> {
        let own: BTreeSet<String> =
            references::inline_ids(id, body, spec).into_iter().map(|(id, ..)| id).collect();
        for reference in found {
            let target = &reference.target;
            if !own.contains(&target.to_lower()) && !self.exists(target).await? {
                return Err(Refusal::reference(target.as_str(), id).into());
            }
            if let Some(action) = &reference.action {
                request.may_linked(
                    self,
                    &format!("{}/write", spec.full),
                    id.as_str(),
                    action,
                    target.as_str(),
                )?;
            }
        }
        Ok(())
    }

    /// Whether a resource exists, in a document of its own or inside of its parent's.
    async fn exists(&self, id: &ResourceId) -> Result<bool, Failure> {
        if types::find(&id.resource_type()).is_some() {
            return Ok(self
                .find(&id.resource_type(), id)
                .await?
                .is_some_and(|stored| !stored.value.deleting));
        }
        let Some(parent) = id.parent() else { return Ok(false) };
        let Some(spec) = types::find(&parent.resource_type()) else { return Ok(false) };
        let Some(stored) = self.find(spec.full, &parent).await? else { return Ok(false) };
        let lower = id.to_lower();
        let mut ids = references::inline_ids(&parent, &stored.value.body, spec).into_iter();
        Ok(!stored.value.deleting && ids.any(|(known, ..)| known == lower))
    }

    /// Rules of role assignments that need the directory and the other assignments.
    async fn check_authorization(
        &self,
        spec: &TypeSpec,
        id: &ResourceId,
        body: &Map<String, Value>,
        tenant: &str,
    ) -> Result<(), Failure> {
        if spec.full != "Microsoft.Authorization/roleAssignments" {
            return Ok(());
        }
        let text = |name: &str| {
            body.get("properties")
                .and_then(|p| p.get(name))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (definition, principal) = (text("roleDefinitionId"), text("principalId"));
        let role = role_of(&definition);
        if !self.0.grants.is_role(&role) {
            let message = format!("The specified role definition with ID '{role}' does not exist.");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "RoleDefinitionDoesNotExist", message).into());
        }
        if !self.0.directory.has_principal(tenant, &principal).await? {
            let message = format!(
                "Principal {principal} does not exist in the directory {tenant}. Check that you have the correct principal ID. If you are creating this principal and then immediately assigning a role, this error might be related to a replication delay. In this case, set the role assignment principalType property to a value, such as ServicePrincipal, User, or Group."
            );
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "PrincipalNotFound", message).into());
        }
        let draft = Resource {
            id: id.to_string(),
            body: body.clone(),
            created: self.now(),
            changed: self.now(),
            created_by: None,
            references: BTreeSet::new(),
            secrets: Vec::new(),
            operation: None,
            deleting: false,
        };
        if self.0.grants.exists(&assignment_of(id, &draft, self.now())) {
            let message = "The role assignment already exists.";
            return Err(Refusal::new(StatusCode::CONFLICT, "RoleAssignmentExists", message).into());
        }
        Ok(())
    }

    /// Reserves what a new resource takes: its name, if that is unique everywhere, and its place in the quota.
    fn reserve(
        &self,
        spec: &'static TypeSpec,
        id: &ResourceId,
        creates: bool,
        location: &str,
    ) -> Result<bool, Refusal> {
        if !creates {
            return Ok(false);
        }
        if self.0.options.faults.exhausts_quota(Target { method: &Method::PUT, id }) {
            let (code, label, limit) = spec
                .quota
                .as_ref()
                .map_or(("QuotaExceeded", spec.full, 0), |quota| (quota.code, quota.label, quota.limit));
            return Err(Refusal::quota(code, label, limit, location));
        }
        if let Some(quota) = &spec.quota {
            let key = (id.subscription().unwrap_or_default().to_lowercase(), location.to_owned(), spec.full);
            if self.0.counts.lock().get(&key).copied().unwrap_or_default() >= quota.limit {
                return Err(Refusal::quota(quota.code, quota.label, quota.limit, location));
            }
        }
        let Some(code) = spec.naming.unique_everywhere else { return Ok(false) };
        let mut names = self.0.names.lock();
        match names.entry((spec.full, id.name().to_lowercase())) {
            Entry::Occupied(taken) if is_deleted_vault(taken.get()) => Err(Refusal::deleted_vault(id.name())),
            Entry::Occupied(_) => Err(Refusal::name_taken(code, id.name())),
            Entry::Vacant(free) => {
                free.insert(id.to_string());
                Ok(true)
            }
        }
    }

    /// What follows a committed write.
    async fn finish(
        &self,
        spec: &'static TypeSpec,
        id: &ResourceId,
        resource: &Resource,
        creates: bool,
    ) -> Result<(), Failure> {
        if creates {
            self.count(spec, id, resource, 1);
        }
        match spec.effect {
            Effect::Authorization => self.grant(spec, id, resource, self.effective(id)),
            Effect::FederatedCredential => self.sync_credentials(id).await?,
            Effect::None | Effect::Identity => {}
        }
        Ok(())
    }
}

/// What the log of mutations keeps of a request.
pub(crate) fn cause_of(request: &CloudRequest) -> Cause<'_> {
    Cause {
        method: request.method.as_str(),
        correlation_id: request.caller.correlation_id.as_deref(),
        caller: request.caller.object_id.as_deref(),
    }
}

/// A JSON object, or Azure's refusal of anything else.
pub(crate) fn body_of(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(Refusal::content("the body must be a JSON object")),
        Err(_) if bytes.is_empty() => Err(Refusal::content("the body is empty")),
        Err(error) => Err(Refusal::content(&error.to_string())),
    }
}

/// The body after a PATCH. Most network types let PATCH change tags only.
fn patched(
    spec: &TypeSpec,
    old: &Map<String, Value>,
    patch: Map<String, Value>,
) -> Result<Map<String, Value>, Refusal> {
    if let Some(tags) = patch.get("tags") {
        check::tags(tags)?;
    }
    let patch: Map<String, Value> = match spec.patch_tags_only {
        true => patch.into_iter().filter(|(name, _)| name == "tags").collect(),
        false => patch,
    };
    let mut body = Value::Object(old.clone());
    // Tags are replaced as a whole, not merged.
    if let (Some(tags), Some(body)) = (patch.get("tags"), body.as_object_mut()) {
        body.insert("tags".to_owned(), tags.clone());
    }
    merge::apply(&mut body, &Value::Object(patch));
    Ok(object(body))
}

/// Puts a child into its parent's body, or takes it out; returns whether there was none of the name.
fn replace_item(body: &mut Map<String, Value>, inline: &Inline, name: &str, item: Option<Value>) -> bool {
    let properties = body.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return true };
    let items = properties.entry(inline.member).or_insert_with(|| json!([]));
    let Some(items) = items.as_array_mut() else { return true };
    let at = items.iter().position(|known| render::is_named(known, name));
    match (at, item) {
        (Some(at), Some(item)) => {
            if let Some(known) = items.get_mut(at) {
                *known = item;
            }
        }
        (Some(at), None) => {
            items.remove(at);
        }
        (None, Some(item)) => items.push(item),
        (None, None) => {}
    }
    at.is_none()
}

/// Why a reservation failed, for the caller.
pub(crate) fn refusal_of(held: Held, id: &ResourceId, spec: &TypeSpec) -> Refusal {
    match held {
        Held::Going(target) => Refusal::reference(&target, id),
        Held::Referred { target, by } => {
            let inline = ResourceId::parse(&target)
                .ok()
                .and_then(|target| spec.inline.iter().find(|inline| target.is_type(inline.full)).copied());
            let in_use = inline.map_or(spec.in_use, |inline| inline.in_use);
            let name = target.rsplit('/').next().unwrap_or_default().to_owned();
            Refusal::in_use(in_use.code, in_use.noun, &name, &by)
        }
    }
}
