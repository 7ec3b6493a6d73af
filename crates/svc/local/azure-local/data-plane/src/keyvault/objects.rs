//! What secrets, keys and certificates have in common: versions, lists, and the way from deleted to recovered or purged.

use aro_base::{SignedDuration, Timestamp};
use aro_store::{Op, PageToken, Typed};
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::documents::{Content, Kind, ObjectRecord, State, VersionRecord, object_place, version_place};
use super::error::VaultError;
use super::{Answer, Call, attributes, policy, render, store};

/// Azure has no limit, but backups stop working at 500 versions.
const MOST_VERSIONS: u32 = 2000;

/// Key Vault's largest page.
const PAGE: usize = 25;

/// A new version of an object, with what belongs to it in the same batch.
pub(super) struct NewVersion {
    pub kind: Kind,
    pub content: Content,
    pub managed: bool,
    pub policy: Option<Value>,
    pub operation: Option<super::documents::CertificateOperation>,
}

/// A version's name: 32 hexadecimal digits that sort by age.
pub(super) fn version_name() -> String {
    Uuid::now_v7().simple().to_string()
}

/// Checks a name that is to be created.
pub(super) fn check_name(name: &str) -> Result<(), VaultError> {
    if store::is_name(name) {
        return Ok(());
    }
    Err(VaultError::bad(
        "The request URI contains an invalid name: it must match the pattern ^[0-9a-zA-Z-]+$ and have at most 127 characters",
    ))
}

/// The operations that add a version to an object, which is created if it does not exist.
pub(super) async fn add_version(
    call: &Call<'_>,
    name: &str,
    version: &str,
    given: &attributes::Given,
    new: NewVersion,
) -> Result<(Vec<Op>, ObjectRecord, VersionRecord), VaultError> {
    let (vault, kind) = (&call.vault.resource_id, new.kind);
    let objects = &call.store.objects;
    let (write_object, object) = match call.store.find_object(vault, kind, name, call.now).await? {
        Some(found) if found.value.state == State::Deleted => return Err(VaultError::deleted(kind, name)),
        Some(found) if found.value.managed != new.managed => {
            return Err(if new.managed { VaultError::exists(kind, name) } else { VaultError::managed(kind) });
        }
        Some(found) if found.value.versions >= MOST_VERSIONS => {
            return Err(VaultError::bad("The object has too many versions."));
        }
        Some(mut found) => {
            version.clone_into(&mut found.value.current);
            found.value.versions += 1;
            found.value.policy = new.policy.or(found.value.policy);
            found.value.operation = new.operation.or(found.value.operation);
            (objects.replace(&found)?, found.value)
        }
        None => {
            let object = ObjectRecord {
                kind,
                name: name.to_owned(),
                state: State::Live,
                current: version.to_owned(),
                versions: 1,
                managed: new.managed,
                deleted: None,
                purge: None,
                policy: new.policy,
                operation: new.operation,
            };
            (objects.create(object_place(vault, kind, name).names, &object)?, object)
        }
    };
    let now = call.now.as_second();
    let mut record = VersionRecord {
        kind,
        // As the first request spelled it.
        name: object.name.clone(),
        version: version.to_owned(),
        created: now,
        updated: now,
        enabled: true,
        nbf: None,
        exp: None,
        tags: std::collections::BTreeMap::new(),
        managed: new.managed,
        content: new.content,
    };
    given.apply(&mut record)?;
    let place = version_place(vault, kind, name, version);
    let write_version = call.store.versions.create(place.names, &record)?;
    Ok((vec![write_version, write_object], object, record))
}

pub(super) async fn get(call: &Call<'_>, kind: Kind, name: &str, version: &str) -> Answer {
    let vault = &call.vault.resource_id;
    let object = call.store.get_object(vault, kind, name, call.now).await?;
    let found = call.store.get_version(vault, &object.value, version).await?;
    Ok((StatusCode::OK, render::bundle(call, &object.value, &found.value)?))
}

/// `PATCH`: attributes and tags, the operations of a key, the content type of a secret, the policy of a certificate.
pub(super) async fn update(call: &Call<'_>, kind: Kind, name: &str, version: &str) -> Answer {
    let vault = &call.vault.resource_id;
    let given = attributes::parse(&call.body)?;
    let mut object = call.store.get_object(vault, kind, name, call.now).await?;
    let mut found = call.store.get_version(vault, &object.value, version).await?;
    given.apply(&mut found.value)?;
    found.value.updated = call.now.as_second();
    match &mut found.value.content {
        Content::Secret { content_type, .. } => {
            if let Some(given) = super::secrets::content_type(&call.body)? {
                *content_type = Some(given);
            }
        }
        Content::Key { operations, .. } => {
            if let Some(given) = super::keys::operations(&call.body)? {
                *operations = given;
            }
        }
        Content::Certificate { .. } => {}
    }
    let mut ops = vec![call.store.versions.replace(&found)?];
    if kind == Kind::Certificate
        && let Some(changes) = call.body.get("policy").filter(|changes| !changes.is_null())
    {
        let old = object.value.policy.take().unwrap_or_else(|| json!({}));
        object.value.policy = Some(policy::merge(old, changes)?);
        ops.push(call.store.objects.replace(&object)?);
    }
    call.store.write(vault, ops).await?;
    let mut shown = render::bundle(call, &object.value, &found.value)?;
    if let (Kind::Secret, Some(shown)) = (kind, shown.as_object_mut()) {
        shown.remove("value");
    }
    Ok((StatusCode::OK, shown))
}

fn page(call: &Call<'_>) -> Result<(usize, Option<PageToken>), VaultError> {
    let size = match call.head.parameter("maxresults") {
        None => PAGE,
        Some(text) => {
            let size: usize = text.parse().map_err(|_| VaultError::property("maxresults"))?;
            if !(1..=PAGE).contains(&size) {
                return Err(VaultError::property("maxresults"));
            }
            size
        }
    };
    Ok((size, call.head.parameter("$skiptoken").map(PageToken::new)))
}

fn listed(call: &Call<'_>, items: Vec<Value>, size: usize, next: Option<PageToken>) -> (StatusCode, Value) {
    let version = call.head.parameter("api-version").unwrap_or_default();
    let next = next.map(|token| {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("api-version", version)
            .append_pair("$skiptoken", token.as_str())
            .append_pair("maxresults", &size.to_string())
            .finish();
        format!("{}/{}?{query}", call.base, call.head.path)
    });
    (StatusCode::OK, json!({"value": items, "nextLink": next}))
}

pub(super) async fn list(call: &Call<'_>, kind: Kind) -> Answer {
    let (size, after) = page(call)?;
    let vault = &call.vault.resource_id;
    let found = call.store.list_objects(vault, kind, State::Live, size, after).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for object in &found.items {
        if let Ok(version) = call.store.get_version(vault, &object.value, "").await {
            items.push(render::item(call, &version.value, false));
        }
    }
    Ok(listed(call, items, size, found.next))
}

pub(super) async fn list_versions(call: &Call<'_>, kind: Kind, name: &str) -> Answer {
    let (size, after) = page(call)?;
    let vault = &call.vault.resource_id;
    match call.store.get_object(vault, kind, name, call.now).await {
        Ok(_) => {}
        // A list of what does not exist is empty.
        Err(error) if error.status == StatusCode::NOT_FOUND => return Ok(listed(call, vec![], size, None)),
        Err(error) => return Err(error),
    }
    let found = call.store.list_versions(vault, kind, name, size, after).await?;
    let items = found.items.iter().map(|version| render::item(call, &version.value, true)).collect();
    Ok(listed(call, items, size, found.next))
}

pub(super) async fn list_deleted(call: &Call<'_>, kind: Kind) -> Answer {
    let (size, after) = page(call)?;
    let vault = &call.vault.resource_id;
    let found = call.store.list_objects(vault, kind, State::Deleted, size, after).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for object in found.items.iter().filter(|object| object.value.purge.is_none_or(|purge| purge > call.now))
    {
        if let Ok(version) = call.store.get_version(vault, &object.value, "").await {
            items.push(render::add_deletion(call, &object.value, render::item(call, &version.value, false)));
        }
    }
    Ok(listed(call, items, size, found.next))
}

/// The objects that share a fate: a certificate with its key and its secret.
async fn family(
    call: &Call<'_>,
    kind: Kind,
    name: &str,
    state: State,
) -> Result<Vec<Typed<ObjectRecord>>, VaultError> {
    let (vault, now) = (&call.vault.resource_id, call.now);
    let own = match state {
        State::Live => call.store.get_object(vault, kind, name, now).await?,
        State::Deleted => call.store.get_deleted(vault, kind, name, now).await?,
    };
    if own.value.managed {
        return Err(VaultError::managed(kind));
    }
    let mut all = vec![own];
    if kind == Kind::Certificate {
        for other in [Kind::Key, Kind::Secret] {
            let found = call.store.find_object(vault, other, name, now).await?;
            all.extend(found.filter(|found| found.value.managed && found.value.state == state));
        }
    }
    Ok(all)
}

pub(super) async fn delete(call: &Call<'_>, kind: Kind, name: &str) -> Answer {
    let vault = &call.vault.resource_id;
    let mut all = family(call, kind, name, State::Live).await?;
    let keep = SignedDuration::from_hours(24 * i64::from(call.vault.soft_delete_days));
    let purge = call.now.saturating_add(keep).unwrap_or(Timestamp::MAX);
    let mut ops = Vec::new();
    for object in &mut all {
        object.value.state = State::Deleted;
        object.value.deleted = Some(call.now);
        object.value.purge = Some(purge);
        ops.push(call.store.objects.replace(object)?);
    }
    call.store.write(vault, ops).await?;
    shown(call, &all).await
}

/// The first object, with what is known of its deletion.
async fn shown(call: &Call<'_>, all: &[Typed<ObjectRecord>]) -> Answer {
    let object = &all.first().ok_or_else(|| VaultError::internal("show an object"))?.value;
    let version = call.store.get_version(&call.vault.resource_id, object, "").await?;
    let bundle = render::bundle(call, object, &version.value)?;
    Ok((StatusCode::OK, render::add_deletion(call, object, bundle)))
}

pub(super) async fn get_deleted(call: &Call<'_>, kind: Kind, name: &str) -> Answer {
    let object = call.store.get_deleted(&call.vault.resource_id, kind, name, call.now).await?;
    shown(call, &[object]).await
}

pub(super) async fn recover(call: &Call<'_>, kind: Kind, name: &str) -> Answer {
    let vault = &call.vault.resource_id;
    let mut all = family(call, kind, name, State::Deleted).await?;
    let mut ops = Vec::new();
    for object in &mut all {
        object.value.state = State::Live;
        object.value.deleted = None;
        object.value.purge = None;
        ops.push(call.store.objects.replace(object)?);
    }
    call.store.write(vault, ops).await?;
    let object = &all.first().ok_or_else(|| VaultError::internal("recover an object"))?.value;
    let version = call.store.get_version(vault, object, "").await?;
    let mut shown = render::bundle(call, object, &version.value)?;
    if let Some(shown) = shown.as_object_mut() {
        shown.remove("value");
    }
    Ok((StatusCode::OK, shown))
}

pub(super) async fn purge(call: &Call<'_>, kind: Kind, name: &str) -> Answer {
    let all = family(call, kind, name, State::Deleted).await?;
    if call.vault.purge_protection {
        let message =
            "Operation \"purge\" is not allowed because purge protection is enabled for this vault.";
        return Err(VaultError::forbidden("PurgeProtectionEnabled", message));
    }
    // The certificate goes last: what is interrupted can be repeated by the same request.
    for object in all.iter().rev() {
        call.store.purge_object(&call.vault.resource_id, object).await?;
    }
    Ok((StatusCode::NO_CONTENT, Value::Null))
}
