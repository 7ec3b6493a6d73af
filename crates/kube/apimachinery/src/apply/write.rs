//! The two ways to write: [`update`] and [`apply`].

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::compare::{Comparison, compare, compare_with_empty};
use super::element::{json, same};
use super::fieldset::{Set, show_path};
use super::managed::{self, Entry, Operation};
use super::merge::{follow_schema, merge, remove_items, with_named_fields};
use super::own::of_object;
use super::shape::Type;
use super::validate::validate;
use super::{ApplyError, Conflict, Context, is_empty_text};
use crate::meta;
use crate::names::{GroupVersion, GroupVersionKind};
use crate::schema::Typed;

/// What is in no entry: it says which object it is, or the server fills it in.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    let mut paths: Vec<&[&str]> = vec![&["apiVersion"], &["kind"], &["metadata"]];
    paths.extend([
        &["metadata", "name"][..],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ]);
    Set::of_names(paths)
});

static NOTHING: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

impl<'a> Context<'a> {
    fn typed_of(&self, api_version: &str) -> Option<Typed<'a>> {
        if api_version == self.api_version { Some(self.typed) } else { (self.typed_for)(api_version) }
    }

    fn entry(&self, operation: Operation, manager: &str, fields: Set) -> Entry {
        Entry {
            manager: if manager.is_empty() { "unknown".to_owned() } else { manager.to_owned() },
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
            time: Some(self.time.to_owned()),
            fields,
        }
    }
}

/// Tracks ownership for a create (`live` is `None`), update or patch: writes `metadata.managedFields` of `new`.
///
/// Fields that the write added or changed go to its manager and leave all others; fields it removed leave everybody.
/// Objects without field managers stay so, until an apply.
pub fn update(live: Option<&Value>, new: &mut Value, cx: &Context<'_>) {
    let entries = entries_for_update(live.unwrap_or(&NOTHING), new, cx);
    meta::remove(new, &["metadata", "managedFields"]);
    let exists = live.is_some_and(|live| !is_empty_text(meta::get(live, &["metadata", "uid"])));
    if entries.is_empty() && exists {
        return;
    }
    let entries = track(live, new, entries, cx, cx.manager);
    managed::encode(entries, new);
}

/// Clients may write the entries themselves, but not through subresources; what they do not send is not lost.
fn entries_for_update(live: &Value, new: &Value, cx: &Context<'_>) -> Vec<Entry> {
    if cx.subresource.is_empty() {
        if managed::is_reset(new) {
            return Vec::new();
        }
        if let Ok(entries) = managed::decode(new)
            && !entries.is_empty()
        {
            return entries;
        }
    }
    managed::decode(live).unwrap_or_default()
}

fn track(
    live: Option<&Value>,
    new: &Value,
    entries: Vec<Entry>,
    cx: &Context<'_>,
    manager: &str,
) -> Vec<Entry> {
    let comparison = match live {
        Some(live) => compare(live, new, cx.typed),
        None => compare_with_empty(new, cx.typed),
    };
    let mut entries = follow(entries, cx);
    if !entries.is_empty() {
        yield_fields(live.unwrap_or(&NOTHING), new, &mut entries, &comparison, cx, |_| false);
    }
    let Comparison { added: mut taken, modified, .. } = comparison;
    if !modified.is_empty() {
        taken = taken.union(&modified);
    }
    taken.subtract_recursive(cx.reset);
    taken.subtract(&UNOWNED);
    if !taken.is_empty() {
        let entry = cx.entry(Operation::Update, manager, taken);
        match entries.iter_mut().find(|known| known.is_same_manager(&entry)) {
            Some(known) => {
                known.fields = known.fields.union(&entry.fields);
                known.time = entry.time;
            }
            None => entries.push(entry),
        }
    }
    managed::cap(&mut entries);
    entries
}

/// Drops entries of versions that are gone, and lets the others follow changes of their type.
fn follow(entries: Vec<Entry>, cx: &Context<'_>) -> Vec<Entry> {
    let known = entries.into_iter().filter_map(|mut entry| {
        let typed = cx.typed_of(&entry.api_version)?;
        follow_schema(&mut entry.fields, Type::Known(typed));
        Some(entry)
    });
    known.collect()
}

/// Takes from entries what was added, changed or removed. Answers what each lost to a change, when it lost something.
fn yield_fields(
    live: &Value,
    new: &Value,
    entries: &mut Vec<Entry>,
    comparison: &Comparison,
    cx: &Context<'_>,
    spared: impl Fn(&Entry) -> bool,
) -> Vec<(Entry, Set)> {
    // Computed for the first manager that may lose a field: a single manager takes from no other.
    let mut own = None;
    let mut lost = Vec::new();
    let mut others: Vec<(String, Comparison)> = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !spared(entry)) {
        let seen = if entry.api_version == cx.api_version {
            own.get_or_insert_with(|| comparison.without(cx.reset))
        } else {
            if !others.iter().any(|(version, _)| *version == entry.api_version)
                && let Some(typed) = cx.typed_of(&entry.api_version)
            {
                let other = compare(live, new, typed).without(cx.reset);
                others.push((entry.api_version.clone(), other));
            }
            match others.iter().find(|(version, _)| *version == entry.api_version) {
                Some((_, comparison)) => comparison,
                None => continue,
            }
        };
        if seen.is_same() {
            continue;
        }
        let taken = entry.fields.intersection(&seen.modified.union(&seen.added));
        if !taken.is_empty() {
            let before = entry.clone();
            entry.fields.subtract(&taken);
            lost.push((before, taken));
        }
        entry.fields.subtract(&seen.removed);
    }
    entries.retain(|entry| !entry.fields.is_empty());
    lost
}

/// Applies a configuration. `None`: nothing changes. The answer carries its `metadata.managedFields`; it is still to be
/// coerced (it may hold nulls and amounts as the client wrote them), defaulted and checked.
pub fn apply(live: Option<&Value>, config: &Value, cx: &Context<'_>) -> Result<Option<Value>, ApplyError> {
    check_config(config, cx)?;
    let live_object = live.unwrap_or(&NOTHING);
    let mut entries = managed::decode(live_object)
        .map_err(|error| ApplyError::Internal(format!("failed to decode managed fields: {error}")))?;
    let bare = without_owners(live_object);
    if entries.is_empty() {
        entries = track(None, &bare, entries, cx, BEFORE_FIRST_APPLY);
    }
    let (mut object, entries) = if cx.manager == "kubectl" {
        let applied = match apply_over(&bare, config, entries.clone(), cx, cx.force) {
            Err(ApplyError::Conflict(conflicts)) => take_over(&bare, config, entries, cx, conflicts),
            other => other,
        };
        let (mut object, entries) = applied?;
        sync_last_applied(&mut object, config);
        (object, entries)
    } else {
        apply_over(&bare, config, entries, cx, cx.force)?
    };
    managed::encode(entries, &mut object);
    Ok(if live.is_some_and(|live| *live == object) { None } else { Some(object) })
}

/// A copy without `metadata.managedFields`, which are often most of it.
fn without_owners(object: &Value) -> Value {
    let copy = |members: &Map<String, Value>, skipped: &str| -> Map<String, Value> {
        let kept = members.iter().filter(|(name, _)| *name != skipped);
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let Some(members) = object.as_object() else { return object.clone() };
    match members.get("metadata") {
        Some(Value::Object(metadata)) => {
            let mut bare = copy(members, "metadata");
            bare.insert("metadata".to_owned(), Value::Object(copy(metadata, "managedFields")));
            Value::Object(bare)
        }
        _ => object.clone(),
    }
}

fn check_config(config: &Value, cx: &Context<'_>) -> Result<(), ApplyError> {
    let (api_version, kind) = (meta::api_version(config), meta::kind(config));
    let show = |api_version: &str, kind: &str| {
        let GroupVersion { group, version } = GroupVersion::parse(api_version).unwrap_or_default();
        let GroupVersionKind { group, version, kind } = GroupVersionKind::new(group, version, kind);
        format!("{group}/{version}, Kind={kind}")
    };
    if api_version != cx.api_version || kind != cx.kind {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", show(api_version, kind))));
    }
    if meta::get(config, &["metadata", "managedFields"]).is_some_and(|entries| !entries.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    validate(config, cx.typed).map_err(|problem| {
        ApplyError::Internal(format!(
            "failed to create typed patch object ({}/{}; {}): {problem}",
            meta::namespace(config),
            meta::name(config),
            show(api_version, kind)
        ))
    })
}

fn apply_over(
    live: &Value,
    config: &Value,
    entries: Vec<Entry>,
    cx: &Context<'_>,
    force: bool,
) -> Result<(Value, Vec<Entry>), ApplyError> {
    let mut entries = follow(entries, cx);
    let merged = merge(live, config, cx.typed)
        .map_err(|error| ApplyError::Internal(format!("failed to merge config: {error}")))?;
    let mut fields = of_object(config, cx.typed);
    fields.subtract_recursive(cx.reset);
    let mut entry = cx.entry(Operation::Apply, cx.manager, fields);
    entry.time = None;
    // Who applies, without what: to be found among the others.
    let applier = cx.entry(Operation::Apply, cx.manager, Set::default());
    let last = match entries.iter().position(|known| known.is_same_manager(&applier)) {
        Some(index) => {
            let last = entries.remove(index);
            entry.time.clone_from(&last.time);
            Some(last)
        }
        None => None,
    };
    entries.push(entry);
    let new = prune(merged, &entries, last.as_ref(), cx);

    if !entries.iter().all(|known| known.is_same_manager(&applier)) {
        let comparison = compare(live, &new, cx.typed);
        let lost =
            yield_fields(live, &new, &mut entries, &comparison, cx, |known| known.is_same_manager(&applier));
        if !force && !lost.is_empty() {
            return Err(ApplyError::Conflict(conflicts(lost)));
        }
    }
    let changed = !same(live, &new);
    if let Some(own) = entries.iter_mut().find(|known| known.is_same_manager(&applier)) {
        own.fields.subtract(&UNOWNED);
        if changed {
            own.time = Some(cx.time.to_owned());
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    Ok((if changed { new } else { live.clone() }, entries))
}

fn conflicts(mut lost: Vec<(Entry, Set)>) -> Vec<Conflict> {
    lost.sort_by(|(a, _), (b, _)| {
        (&a.manager, a.operation, &a.api_version, &a.subresource).cmp(&(
            &b.manager,
            b.operation,
            &b.api_version,
            &b.subresource,
        ))
    });
    let mut out = Vec::new();
    for (entry, fields) in &lost {
        let manager = show_manager(entry);
        for path in fields.paths() {
            out.push(Conflict { manager: manager.clone(), field: show_path(&path) });
        }
    }
    out
}

fn show_manager(entry: &Entry) -> String {
    let mut out = crate::status::go_quote(&entry.manager);
    if !entry.subresource.is_empty() {
        out = format!("{out} with subresource {}", crate::status::go_quote(&entry.subresource));
    }
    match entry.operation {
        Operation::Apply => out,
        Operation::Update => format!("{out} using {}", entry.api_version),
    }
}

/// Takes out what the manager applied last time, does not apply now, and no other manager owns.
/// A map or list that lost all it had is null in the answer, as it is upstream: built-in types lose it when they are
/// coerced, custom ones fail their checks unless they may be null.
fn prune(merged: Value, entries: &[Entry], last: Option<&Entry>, cx: &Context<'_>) -> Value {
    let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return merged };
    let Some(typed) = cx.typed_of(&last.api_version) else { return merged };
    let merged = &merged;
    let kind = Type::Known(typed);
    let last_fields = with_named_fields(&last.fields, kind);
    let mut pruned = remove_items(merged, &last_fields, typed);
    // What others own comes back, version by version, that of the last apply first.
    let mut versions: Vec<&str> = vec![&last.api_version];
    for entry in entries {
        if !versions.contains(&&*entry.api_version) {
            versions.push(&entry.api_version);
        }
    }
    for version in versions {
        let Some(typed) = cx.typed_of(version) else { continue };
        let kind = Type::Known(typed);
        let owned = entries
            .iter()
            .filter(|entry| entry.api_version == version)
            .fold(Set::default(), |owned, entry| owned.union(&entry.fields));
        let all = with_named_fields(&of_object(merged, typed), kind);
        let kept =
            with_named_fields(&of_object(&pruned, typed), kind).union(&with_named_fields(&owned, kind));
        pruned = remove_items(merged, &all.difference(&kept), typed);
    }
    // And so does what this manager did not own.
    let kept = with_named_fields(&of_object(&pruned, typed), kind);
    let all = with_named_fields(&of_object(merged, typed), kind);
    remove_items(merged, &all.difference(&kept).intersection(&last_fields), typed)
}

/// kubectl may take the fields of its client-side apply that no other manager changed since.
fn take_over(
    live: &Value,
    config: &Value,
    entries: Vec<Entry>,
    cx: &Context<'_>,
    conflicts: Vec<Conflict>,
) -> Result<(Value, Vec<Entry>), ApplyError> {
    let Some(allowed) = fields_of_last_applied(live, cx) else { return Err(ApplyError::Conflict(conflicts)) };
    let allowed: std::collections::HashSet<String> =
        allowed.paths().iter().map(|path| show_path(path)).collect();
    let left: Vec<Conflict> =
        conflicts.into_iter().filter(|conflict| !allowed.contains(&conflict.field)).collect();
    if left.is_empty() {
        apply_over(live, config, entries, cx, true)
    } else {
        Err(ApplyError::Conflict(left))
    }
}

fn fields_of_last_applied(live: &Value, cx: &Context<'_>) -> Option<Set> {
    let text = last_applied(live)?;
    let said: Value = serde_json::from_str(text).ok()?;
    if meta::api_version(&said) != cx.api_version {
        return None;
    }
    validate(&said, cx.typed).ok()?;
    let since = compare(&said, live, cx.typed);
    let fields = of_object(&said, cx.typed);
    Some(fields.difference(&since.modified).difference(&since.added).difference(&since.removed))
}

fn last_applied(object: &Value) -> Option<&str> {
    meta::annotations(object)?.get(LAST_APPLIED)?.as_str().filter(|text| !text.is_empty())
}

/// Keeps the annotation of client-side apply true, where there is one.
fn sync_last_applied(object: &mut Value, config: &Value) {
    if last_applied(object).is_none() {
        return;
    }
    let mut said = config.clone();
    meta::remove(&mut said, &["metadata", "annotations", LAST_APPLIED]);
    let text = json(&said) + "\n";
    meta::set(object, &["metadata", "annotations", LAST_APPLIED], Value::String(text));
}

/// Puts the times of the live object's entries back when nothing else differs, so that a write without effect is seen
/// as one. For the end of a write, when defaults are set and the server has filled in its part.
pub fn ignore_times(live: &Value, new: &mut Value) {
    let path = &["metadata", "managedFields"];
    let (Some(Value::Array(old)), Some(Value::Array(entries))) =
        (meta::get(live, path), meta::get(new, path))
    else {
        return;
    };
    let alike = |old: &Value, new: &Value| {
        let names = ["manager", "operation", "apiVersion", "subresource", "fieldsType", "fieldsV1"];
        names.iter().all(|name| old.get(name) == new.get(name))
    };
    // The order goes by time: look each one up.
    let found = |entry: &Value| old.iter().any(|old| alike(old, entry));
    if old.len() != entries.len() || *old == *entries || !entries.iter().all(found) {
        return;
    }
    let same_but = |left: &Map<String, Value>, right: &Map<String, Value>, name: &str| {
        let without = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(name));
        without(left) == without(right)
            && left.iter().all(|(key, value)| key == name || right.get(key) == Some(value))
    };
    fn members<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
        meta::get(object, path).and_then(Value::as_object)
    }
    let alike_at = |path: &[&str], but: &str| match (members(live, path), members(new, path)) {
        (Some(live), Some(new)) => same_but(live, new, but),
        _ => false,
    };
    if alike_at(&[], "metadata") && alike_at(&["metadata"], "managedFields") {
        let old = old.clone();
        meta::set(new, path, Value::Array(old));
    }
}
