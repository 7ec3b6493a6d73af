//! Reads a body by its table, in one pass.
//!
//! Two kinds of problem come out. What cannot be decoded (a number where a text belongs) is reported alone, all of it at
//! once: the rest cannot be judged. Everything else is collected while the walk repairs the value —
//! a wrong word becomes a right one, a wrong id is left out — so that the typed structs can be made and the rules
//! across members can add what they find.

use serde_json::{Map, Value};

use super::problems::Problems;
use super::{Access, Body, Kind, Member, Omitted, Presence, Scalar, Version};
use crate::field::Problem;
use crate::{FieldError, FieldPath, ResourceId};

/// Reads a body into the canonical form, given the stored one on a replace.
///
/// `Err` when it cannot be decoded. The canonical form holds the members callers can write, nothing else.
pub fn read<V: Version>(
    body: &Body<V>,
    version: V,
    given: &Value,
    stored: Option<&Map<String, Value>>,
) -> Result<(Map<String, Value>, Problems), Vec<FieldError>> {
    let mut given = std::borrow::Cow::Borrowed(given);
    for moved in body.moves.iter().filter(|moved| moved.applies(version)) {
        moved.lift(given.to_mut());
    }
    let mut reader = Reader { version, undecodable: Problems::default(), problems: Problems::default() };
    let root = FieldPath::root();
    let Some(given) = given.as_object() else {
        let why = format!("expected an object, got {}", kind_of(&given));
        return Err(vec![FieldError::undecodable(&root, why)]);
    };
    let canonical = reader.object(body.members, Some(given), stored, &root, true);
    reader.undecodable.finish(body, version)?;
    Ok((canonical, reader.problems))
}

/// Adds a problem for every `null` in a patch that its member refuses.
pub fn refuse_nulls<V: Version>(
    members: &[Member<V>],
    version: V,
    patch: &Map<String, Value>,
    path: &FieldPath,
    problems: &mut Problems,
) {
    for member in members.iter().filter(|member| writable(member, version)) {
        let at = path.child(member.name);
        match (patch.get(member.name), member.kind) {
            (Some(Value::Null), _) if refuses_null(member, version) => problems.push(null_refused(&at)),
            (Some(Value::Object(patch)), Kind::Object(members, _)) => {
                refuse_nulls(members, version, patch, &at, problems);
            }
            _ => {}
        }
    }
}

fn writable<V: Version>(member: &Member<V>, version: V) -> bool {
    member.is_known(version) && member.access(version) != Access::ReadOnly
}

fn refuses_null<V: Version>(member: &Member<V>, version: V) -> bool {
    member.null_refused.is_some_and(|from| from <= version)
}

fn null_refused(at: &FieldPath) -> FieldError {
    FieldError::invalid_number(at, "null", "must not be null")
}

struct Reader<V> {
    version: V,
    undecodable: Problems,
    problems: Problems,
}

impl<V: Version> Reader<V> {
    /// `known` is false below an object the version does not know: then nothing was sent and nothing is missed.
    fn object(
        &mut self,
        members: &[Member<V>],
        given: Option<&Map<String, Value>>,
        stored: Option<&Map<String, Value>>,
        path: &FieldPath,
        known: bool,
    ) -> Map<String, Value> {
        let mut out = Map::new();
        for member in members {
            if member.access(self.version) == Access::ReadOnly {
                continue;
            }
            let before = stored.and_then(|stored| stored.get(member.name));
            let value = if known && member.is_known(self.version) {
                let sent = given.and_then(|given| given.get(member.name));
                self.member(member, sent, before, stored.is_some(), &path.child(member.name))
            } else {
                self.carried(member, before, path)
            };
            if let Some(value) = value {
                out.insert(member.name.to_owned(), value);
            }
        }
        out
    }

    /// The value of a member the version does not know: the stored one, or what it is in the beginning.
    fn carried(&mut self, member: &Member<V>, before: Option<&Value>, path: &FieldPath) -> Option<Value> {
        match member.kind {
            Kind::Object(members, Presence::Always) => {
                let before = before.and_then(Value::as_object);
                Some(Value::Object(self.object(members, None, before, path, false)))
            }
            _ => before.cloned().or_else(|| member.initial.map(Scalar::value)),
        }
    }

    fn member(
        &mut self,
        member: &Member<V>,
        sent: Option<&Value>,
        before: Option<&Value>,
        replacing: bool,
        at: &FieldPath,
    ) -> Option<Value> {
        if matches!(sent, Some(Value::Null)) && refuses_null(member, self.version) {
            self.problems.push(null_refused(at));
            return repaired(member, before);
        }
        let sent = sent.filter(|sent| !is_unset(sent, member));
        match (sent, member.kind) {
            (Some(sent), kind) => match self.value(kind, sent, before, at) {
                Some(value) => Some(value),
                None => repaired(member, before),
            },
            (None, _) if member.omitted == Omitted::Keep && before.is_some() => before.cloned(),
            (None, _) if member.default.is_some() => member.default.map(Scalar::value),
            (None, Kind::Object(members, Presence::Always)) => {
                let before = before.and_then(Value::as_object);
                Some(Value::Object(self.object(members, None, before, at, true)))
            }
            (None, _) => {
                // What an older version did not ask for may stay absent: a newer one cannot be written otherwise.
                let absent_before = replacing && before.is_none();
                if member.is_required(self.version) && !absent_before {
                    let hint = member.hint.filter(|(until, _)| self.version <= *until);
                    let hint = hint.map(|(_, text)| text.to_owned());
                    self.problems.push(FieldError::new(at, Problem::Required(hint)));
                    return repaired(member, before);
                }
                None
            }
        }
    }

    /// Checks a value; `None` when it cannot be used.
    fn value(
        &mut self,
        kind: Kind<V>,
        sent: &Value,
        before: Option<&Value>,
        at: &FieldPath,
    ) -> Option<Value> {
        match (kind, sent) {
            (Kind::Text { min, max, pattern }, Value::String(text)) => {
                if max.is_some_and(|max| text.len() > max) {
                    self.problems.push(FieldError::too_long(at, max.unwrap_or_default()));
                } else if text.len() < min {
                    self.problems.push(FieldError::required(at));
                } else if let Some(pattern) = pattern
                    && !pattern.matches(text)
                {
                    self.problems.push(FieldError::invalid(at, text, pattern.why));
                }
                Some(sent.clone())
            }
            (Kind::Word(words), Value::String(text)) => {
                if !words.contains(&text.as_str()) {
                    self.problems.push(FieldError::unsupported(at, text, words));
                    return None;
                }
                Some(sent.clone())
            }
            (Kind::Int { min, max }, Value::Number(number)) => self.int(number, min, max, at),
            (Kind::Bool, Value::Bool(_)) => Some(sent.clone()),
            (Kind::Id(resource_type), Value::String(text)) => {
                let id = self.id(resource_type, text, at)?;
                // Another spelling of the same id is no change.
                let same =
                    before.and_then(Value::as_str).filter(|before| before.eq_ignore_ascii_case(id.as_str()));
                Some(Value::from(same.unwrap_or(id.as_str())))
            }
            (Kind::Object(members, _), Value::Object(sent)) => {
                let before = before.and_then(Value::as_object);
                Some(Value::Object(self.object(members, Some(sent), before, at, true)))
            }
            (Kind::List { item, min, max }, Value::Array(items)) => {
                if let Some(max) = max.filter(|max| items.len() > *max) {
                    self.problems.push(FieldError::too_many(at, items.len(), max));
                } else if items.len() < min {
                    let why = format!("must have at least {min} items");
                    self.problems.push(FieldError::invalid_number(at, items.len(), why));
                }
                let items = items.iter().enumerate();
                Some(items.filter_map(|(i, sent)| self.value(*item, sent, None, &at.index(i))).collect())
            }
            (Kind::Map(kind), Value::Object(entries)) => {
                let before = before.and_then(Value::as_object);
                let mut out = Map::new();
                for (key, sent) in entries {
                    let before = before.and_then(|before| before.get(key));
                    // `null` removes the entry.
                    if let Some(value) =
                        (!sent.is_null()).then(|| self.value(*kind, sent, before, &at.key(key)))
                    {
                        out.extend(value.map(|value| (key.clone(), value)));
                    }
                }
                Some(Value::Object(out))
            }
            (Kind::IdMap(resource_type), Value::Object(entries)) => {
                Some(Value::Object(self.id_map(resource_type, entries, at)))
            }
            (Kind::Shown(_), _) => None,
            _ => {
                let why = format!("{at}: expected {}, got {}", expected(kind), kind_of(sent));
                self.undecodable.push(FieldError::undecodable(at, why));
                None
            }
        }
    }

    fn int(
        &mut self,
        number: &serde_json::Number,
        min: Option<i32>,
        max: Option<i32>,
        at: &FieldPath,
    ) -> Option<Value> {
        let Some(value) = number.as_i64().and_then(|value| i32::try_from(value).ok()) else {
            let why = format!("{at}: expected a 32-bit integer, got {number}");
            self.undecodable.push(FieldError::undecodable(at, why));
            return None;
        };
        if let Some(min) = min.filter(|min| value < *min) {
            let why = format!("must be greater than or equal to {min}");
            self.problems.push(FieldError::invalid_number(at, value, why));
        } else if let Some(max) = max.filter(|max| value > *max) {
            let why = format!("must be less than or equal to {max}");
            self.problems.push(FieldError::invalid_number(at, value, why));
        }
        Some(Value::from(value))
    }

    fn id(&mut self, resource_type: &str, text: &str, at: &FieldPath) -> Option<ResourceId> {
        match ResourceId::parse(text) {
            Ok(id) => {
                if !resource_type.is_empty() && !id.is_type(resource_type) {
                    let why = format!("resource ID must reference an instance of type {resource_type:?}");
                    self.problems.push(FieldError::invalid(at, text, why));
                }
                Some(id)
            }
            Err(error) => {
                self.problems.push(FieldError::invalid(at, text, error.to_string()));
                None
            }
        }
    }

    /// Keys are ids, each of which counts once however it is spelt; values are dropped.
    fn id_map(
        &mut self,
        resource_type: &str,
        entries: &Map<String, Value>,
        at: &FieldPath,
    ) -> Map<String, Value> {
        let mut ids = std::collections::BTreeSet::new();
        for (key, value) in entries {
            let at = at.key(key);
            if !matches!(value, Value::Object(_) | Value::Null) {
                let why = format!("{at}: expected an object, got {}", kind_of(value));
                self.undecodable.push(FieldError::undecodable(&at, why));
            }
            ids.extend(self.id(resource_type, key, &at));
        }
        ids.into_iter().map(|id| (id.as_str().to_owned(), Value::Object(Map::new()))).collect()
    }
}

/// `null` is none; so is an empty text.
fn is_unset<V: Version>(sent: &Value, member: &Member<V>) -> bool {
    match sent {
        Value::Null => true,
        Value::String(text) => {
            text.is_empty() && matches!(member.kind, Kind::Text { .. } | Kind::Word(_) | Kind::Id(_))
        }
        _ => false,
    }
}

/// What stands in for a value that was wrong or missing, so that the typed structs can be made.
fn repaired<V: Version>(member: &Member<V>, before: Option<&Value>) -> Option<Value> {
    let usual = before.cloned().or_else(|| member.default.or(member.initial).map(Scalar::value));
    match member.kind {
        Kind::Word(words) => usual.or_else(|| words.first().map(|word| Value::from(*word))),
        Kind::Int { .. } | Kind::Bool => usual,
        _ => None,
    }
}

impl Scalar {
    pub fn value(self) -> Value {
        match self {
            Self::Text(text) => Value::from(text),
            Self::Int(number) => Value::from(number),
            Self::Bool(yes) => Value::from(yes),
        }
    }
}

fn expected<V: Version>(kind: Kind<V>) -> &'static str {
    match kind {
        Kind::Text { .. } | Kind::Word(_) | Kind::Id(_) => "a string",
        Kind::Int { .. } => "an integer",
        Kind::Bool => "a boolean",
        Kind::Object(..) | Kind::Map(_) | Kind::IdMap(_) => "an object",
        Kind::List { .. } => "an array",
        Kind::Shown(_) => "nothing",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
