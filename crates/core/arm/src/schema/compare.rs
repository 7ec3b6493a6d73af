//! Which create-only members changed.

use serde_json::{Map, Value};

use super::problems::Problems;
use super::{Access, Kind, Member, Presence, Version};
use crate::{FieldError, FieldPath};

/// Adds a problem for every create-only member whose value differs. Members the version does not know were carried
/// over, so they cannot differ. A missing member that is already reported is not reported twice.
pub fn immutable<'a, V: Version>(
    members: &[Member<V>],
    version: V,
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    path: &FieldPath,
    problems: &mut Problems,
) {
    for member in members.iter().filter(|member| member.is_known(version)) {
        let at = path.child(member.name);
        let (before, after) = (old.get(member.name), new.get(member.name));
        match (member.kind, member.access(version)) {
            (_, Access::ReadOnly) => {}
            (Kind::Object(members, presence), _) if !member.atomic => {
                let none = Map::new();
                let object = |value: Option<&'a Value>| value.and_then(Value::as_object);
                match (object(before), object(after), presence) {
                    (Some(before), Some(after), _) => {
                        immutable(members, version, before, after, &at, problems);
                    }
                    // An optional object on one side only is left to the rules across members.
                    (_, _, Presence::Optional) => {}
                    (before, after, Presence::Always) => {
                        let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
                        immutable(members, version, before, after, &at, problems);
                    }
                }
            }
            (_, Access::Create) if before != after && !(after.is_none() && problems.has(&at)) => {
                problems.push(FieldError::immutable(&at));
            }
            _ => {}
        }
    }
}
