//! How tables are written: constructors and modifiers of a [`Member`], all of them `const`.

use super::{Access, Kind, Member, Omitted, Pattern, Presence, Scalar, Version};

impl<V: Version> Member<V> {
    const fn new(name: &'static str, kind: Kind<V>) -> Self {
        Self {
            name,
            kind,
            since: V::OLDEST,
            until: None,
            access: Access::Update,
            opened: None,
            required: None,
            hint: None,
            default: None,
            initial: None,
            omitted: Omitted::Reset,
            null_refused: None,
            atomic: false,
        }
    }

    pub const fn text(name: &'static str) -> Self {
        Self::new(name, Kind::Text { min: 0, max: None, pattern: None })
    }

    pub const fn word(name: &'static str, words: &'static [&'static str]) -> Self {
        Self::new(name, Kind::Word(words))
    }

    pub const fn int(name: &'static str) -> Self {
        Self::new(name, Kind::Int { min: None, max: None })
    }

    pub const fn bool(name: &'static str) -> Self {
        Self::new(name, Kind::Bool)
    }

    pub const fn arm_id(name: &'static str, resource_type: &'static str) -> Self {
        Self::new(name, Kind::Id(resource_type))
    }

    /// An object that is always there, sent or not.
    pub const fn object(name: &'static str, members: &'static [Member<V>]) -> Self {
        Self::new(name, Kind::Object(members, Presence::Always))
    }

    /// An object that is there when it was sent.
    pub const fn optional(name: &'static str, members: &'static [Member<V>]) -> Self {
        Self::new(name, Kind::Object(members, Presence::Optional))
    }

    pub const fn list(name: &'static str, item: &'static Kind<V>) -> Self {
        Self::new(name, Kind::List { item, min: 0, max: None })
    }

    pub const fn map(name: &'static str, value: &'static Kind<V>) -> Self {
        Self::new(name, Kind::Map(value))
    }

    pub const fn id_map(name: &'static str, resource_type: &'static str) -> Self {
        Self::new(name, Kind::IdMap(resource_type))
    }

    /// A member the service writes; `json_type` as OpenAPI names it.
    pub const fn shown(name: &'static str, json_type: &'static str) -> Self {
        let mut member = Self::new(name, Kind::Shown(json_type));
        member.access = Access::ReadOnly;
        member
    }

    pub const fn since(mut self, version: V) -> Self {
        self.since = version;
        self
    }

    pub const fn until(mut self, version: V) -> Self {
        self.until = Some(version);
        self
    }

    pub const fn create_only(mut self) -> Self {
        self.access = Access::Create;
        self
    }

    pub const fn read_only(mut self) -> Self {
        self.access = Access::ReadOnly;
        self
    }

    /// Create-only before that version, open to updates from it on.
    pub const fn updatable_from(mut self, version: V) -> Self {
        self.access = Access::Create;
        self.opened = Some((version, Access::Update));
        self
    }

    pub const fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    pub const fn required(self) -> Self {
        self.required_from(V::OLDEST)
    }

    pub const fn required_from(mut self, version: V) -> Self {
        self.required = Some(version);
        self
    }

    /// Adds a hint for callers of versions up to this one that omit it.
    pub const fn hint_until(mut self, version: V, text: &'static str) -> Self {
        self.hint = Some((version, text));
        self
    }

    pub const fn default_text(mut self, value: &'static str) -> Self {
        self.default = Some(Scalar::Text(value));
        self.initial = self.default;
        self
    }

    pub const fn default_int(mut self, value: i32) -> Self {
        self.default = Some(Scalar::Int(value));
        self.initial = self.default;
        self
    }

    pub const fn default_bool(mut self, value: bool) -> Self {
        self.default = Some(Scalar::Bool(value));
        self.initial = self.default;
        self
    }

    /// Its value when it was made by a version that does not know it, though versions that do have no default.
    pub const fn initially(mut self, value: &'static str) -> Self {
        self.initial = Some(Scalar::Text(value));
        self
    }

    pub const fn keep(mut self) -> Self {
        self.omitted = Omitted::Keep;
        self
    }

    pub const fn null_refused_from(mut self, version: V) -> Self {
        self.null_refused = Some(version);
        self
    }

    /// Limits a text's bytes.
    pub const fn length(mut self, shortest: usize, longest: usize) -> Self {
        if let Kind::Text { min, max, .. } = &mut self.kind {
            *min = shortest;
            *max = Some(longest);
        }
        self
    }

    pub const fn at_least_bytes(mut self, shortest: usize) -> Self {
        if let Kind::Text { min, .. } = &mut self.kind {
            *min = shortest;
        }
        self
    }

    pub const fn matching(mut self, wanted: &'static Pattern) -> Self {
        if let Kind::Text { pattern, .. } = &mut self.kind {
            *pattern = Some(wanted);
        }
        self
    }

    /// Limits a number.
    pub const fn range(mut self, least: i32, most: i32) -> Self {
        self.kind = Kind::Int { min: Some(least), max: Some(most) };
        self
    }

    pub const fn at_least(mut self, least: i32) -> Self {
        self.kind = Kind::Int { min: Some(least), max: None };
        self
    }

    /// Limits the items of a list.
    pub const fn items(mut self, fewest: usize, most: usize) -> Self {
        if let Kind::List { min, max, .. } = &mut self.kind {
            *min = fewest;
            *max = Some(most);
        }
        self
    }

    pub fn is_known(&self, version: V) -> bool {
        self.since <= version && self.until.is_none_or(|until| version <= until)
    }

    pub fn is_required(&self, version: V) -> bool {
        self.required.is_some_and(|from| from <= version)
    }

    pub fn access(&self, version: V) -> Access {
        match self.opened {
            Some((from, access)) if from <= version => access,
            _ => self.access,
        }
    }
}
