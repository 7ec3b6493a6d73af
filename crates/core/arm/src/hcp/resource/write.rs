//! The steps of a write that all resources share.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Context, Identity};
use crate::hcp::members::{Body, Kind, Member};
use crate::hcp::version::ApiVersion;
use crate::schema::problems::Problems;
use crate::schema::{Pattern, compare, pattern, read};
use crate::{FieldError, FieldPath, ResourceId, merge};

pattern!(
    /// Letters, digits and dashes, as names of all three resources are made of.
    NAME,
    "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$",
    "must start with a letter, end with a letter or digit, and hold only letters, digits and '-'"
);

/// What a name must look like.
#[derive(Debug)]
pub struct NameRule {
    pub longest: usize,
    pub pattern: &'static Pattern,
}

pub static CLUSTER_NAME: NameRule = NameRule { longest: 54, pattern: &NAME };
pub static CHILD_NAME: NameRule = NameRule { longest: 15, pattern: &NAME };

/// Checks the name of a new resource, and that a name in the body is the URL's. Names differ only in more than case.
pub fn check_name(
    canonical: &Map<String, Value>,
    cx: &Context<'_>,
    rule: Option<&NameRule>,
    problems: &mut Problems,
) {
    let at = FieldPath::new("name");
    let name = cx.id.name();
    if let Some(sent) = canonical.get("name").and_then(Value::as_str)
        && !sent.eq_ignore_ascii_case(name)
    {
        problems.push(FieldError::invalid(&at, sent, format!("must match the name in the URL: {name:?}")));
    }
    if let Some(rule) = rule {
        if name.len() > rule.longest {
            problems.push(FieldError::too_long(&at, rule.longest));
        } else if !rule.pattern.matches(name) {
            problems.push(FieldError::invalid(&at, name, rule.pattern.why));
        }
    }
}

/// Takes a part out of what was read. The reader guarantees that it fits; a part that does not is reported as undecodable.
pub fn typed<T: DeserializeOwned>(
    canonical: &mut Map<String, Value>,
    name: &str,
) -> Result<T, Vec<FieldError>> {
    let value = canonical.remove(name).unwrap_or(Value::Null);
    serde_json::from_value(value)
        .map_err(|error| vec![FieldError::undecodable(&FieldPath::new(name), format!("{name}: {error}"))])
}

/// A part of a stored object in canonical form.
pub fn insert<T: Serialize>(canonical: &mut Map<String, Value>, name: &str, part: &T) {
    if let Ok(value) = serde_json::to_value(part) {
        canonical.insert(name.to_owned(), value);
    }
}

/// The identity that was sent, with what the service learned about the identities that stay. The spelling of an
/// identity that stays is kept too.
pub fn adopt_identity(sent: Option<Identity>, old: Option<&Identity>) -> Option<Identity> {
    let sent = sent?;
    let known = old.map(|old| &old.user_assigned_identities);
    let assigned = sent.user_assigned_identities.into_iter().map(|(id, blank)| {
        match known.and_then(|known| known.get_key_value(&id)) {
            Some((id, known)) => (id.clone(), known.clone()),
            None => (id, blank),
        }
    });
    Some(Identity {
        principal_id: old.and_then(|old| old.principal_id.clone()),
        tenant_id: old.and_then(|old| old.tenant_id.clone()),
        kind: sent.kind,
        user_assigned_identities: assigned.collect(),
    })
}

/// Adds a problem for every create-only member that differs between two canonical forms.
pub fn check_immutable(
    body: &Body,
    version: ApiVersion,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    problems: &mut Problems,
) {
    compare::immutable(body.members, version, old, new, &FieldPath::root(), problems);
}

/// The body a patch asks for: the patch merged into what the version shows of the stored object.
///
/// Tags are replaced as a whole, as ARM has it. In the oldest version a `null` for an object has no effect.
pub fn patched(
    body: &Body,
    version: ApiVersion,
    shown: Value,
    patch: &Value,
) -> Result<Value, Vec<FieldError>> {
    let Some(members) = patch.as_object() else {
        return Ok(patch.clone());
    };
    let mut problems = Problems::default();
    read::refuse_nulls(body.members, version, members, &FieldPath::root(), &mut problems);
    problems.finish(body, version)?;
    let mut members = members.clone();
    let tags = members.remove("tags");
    if version == ApiVersion::OLDEST {
        forget_null_objects(body.members, &mut members);
    }
    let mut merged = shown;
    align_identities(&merged, &mut members);
    merge::apply(&mut merged, &Value::Object(members));
    if let (Some(tags), Some(merged)) = (tags, merged.as_object_mut()) {
        // `null` is none; an empty map removes them in the replace that follows, which keeps what is omitted.
        let tags = if tags.is_null() { Value::Object(Map::new()) } else { tags };
        merged.insert("tags".to_owned(), tags);
    }
    Ok(merged)
}

fn forget_null_objects(members: &[Member], patch: &mut Map<String, Value>) {
    for member in members {
        let Kind::Object(inner, _) = member.kind else { continue };
        match patch.get_mut(member.name) {
            Some(Value::Null) => {
                patch.remove(member.name);
            }
            Some(Value::Object(patch)) => forget_null_objects(inner, patch),
            _ => {}
        }
    }
}

/// Spells the identities of a patch as the stored object does, so that they meet in the merge.
fn align_identities(shown: &Value, patch: &mut Map<String, Value>) {
    let Some(stored) = shown.pointer("/identity/userAssignedIdentities").and_then(Value::as_object) else {
        return;
    };
    let sent = patch.get_mut("identity").and_then(|identity| identity.get_mut("userAssignedIdentities"));
    let Some(Value::Object(sent)) = sent else { return };
    let aligned = std::mem::take(sent).into_iter().map(|(key, value)| {
        let id = ResourceId::parse(&key).ok();
        let same = id.and_then(|id| stored.keys().find(|known| known.eq_ignore_ascii_case(id.as_str())));
        (same.cloned().unwrap_or(key), value)
    });
    *sent = aligned.collect();
}
