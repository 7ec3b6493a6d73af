//! What a member is, as data; and the engine that reads bodies by it.
//!
//! A resource's body is a table of [`Member`]s: name, kind, limits, the api-versions that know it, who may write it,
//! what an absent one means. Tables describe the newest shape; the few members that older versions keep elsewhere
//! are listed as [`Move`]s.
//!
//! - [`read`](read::read): body + table → canonical JSON, and every problem on the way. The result always fits the
//!   typed structs, whatever was sent, so that the rules across members can run even when single members are wrong.
//! - [`immutable`](compare::immutable): create-only members that changed.
//! - [`Projection`](project::Projection): canonical JSON → the members a version knows.
//!
//! What it is not: rules across members. Those are functions over typed structs, beside each resource.

pub mod compare;
pub mod moves;
pub mod problems;
pub mod project;
pub mod read;

use std::sync::LazyLock;

use regex::Regex;

use super::version::ApiVersion;

pub use moves::Move;

/// One member of an object.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub name: &'static str,
    pub kind: Kind,
    /// The first api-version that knows it.
    pub since: ApiVersion,
    /// The last one, where it was dropped.
    pub until: Option<ApiVersion>,
    pub access: Access,
    /// A wider access than `access`, from that version on.
    pub opened: Option<(ApiVersion, Access)>,
    /// The first version that requires it.
    pub required: Option<ApiVersion>,
    /// What callers of versions up to this one are told about missing it.
    pub hint: Option<(ApiVersion, &'static str)>,
    /// What an omitted one means.
    pub default: Option<Scalar>,
    /// What it is when it was made by a version that does not know it.
    pub initial: Option<Scalar>,
    /// What a replace that omits it does.
    pub omitted: Omitted,
    /// The first version that refuses an explicit `null`; otherwise `null` is like omitting it.
    pub null_refused: Option<ApiVersion>,
    /// Compared as a whole, and reported as a whole, when a create-only part of it changes.
    pub atomic: bool,
}

/// The kinds of value, with the limits a value of that kind can have on its own.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// An empty text is the same as none.
    Text {
        min: usize,
        max: Option<usize>,
        pattern: Option<&'static Pattern>,
    },
    /// One of a list of words, matched to the letter.
    Word(&'static [&'static str]),
    /// A 32-bit number.
    Int {
        min: Option<i32>,
        max: Option<i32>,
    },
    Bool,
    /// The id of a resource of this type; `""` for any.
    Id(&'static str),
    Object(&'static [Member], Presence),
    List {
        item: &'static Kind,
        min: usize,
        max: Option<usize>,
    },
    /// A map from free names.
    Map(&'static Kind),
    /// A map from ids of this type to objects the service fills; what a caller puts in them is dropped.
    IdMap(&'static str),
    /// Shown only; never read.
    Shown(&'static str),
}

/// Whether an object that was not sent is there all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Always: its members have their defaults, and required ones are missed.
    Always,
    /// Only when it was sent.
    Optional,
}

/// Who may write a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The service; what callers send is ignored.
    ReadOnly,
    /// Callers, once.
    Create,
    /// Callers, any time.
    Update,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omitted {
    /// Back to the default.
    Reset,
    /// The stored value stays.
    Keep,
}

/// A default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Text(&'static str),
    Int(i32),
    Bool(bool),
}

/// A pattern, compiled once, and how a caller is told about it.
#[derive(Debug)]
pub struct Pattern {
    pub text: &'static str,
    pub why: &'static str,
    regex: LazyLock<Option<Regex>>,
}

impl Pattern {
    pub const fn new(text: &'static str, why: &'static str, compile: fn() -> Option<Regex>) -> Self {
        Self { text, why, regex: LazyLock::new(compile) }
    }

    /// A pattern that did not compile matches nothing; tests compile them all.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

/// A static [`Pattern`]: `pattern!(NAME, "^…$", "(why)")`.
macro_rules! pattern {
    ($(#[$doc:meta])* $name:ident, $text:expr, $why:expr) => {
        $(#[$doc])*
        pub static $name: $crate::hcp::schema::Pattern =
            $crate::hcp::schema::Pattern::new($text, $why, || regex::Regex::new($text).ok());
    };
}
pub(crate) use pattern;

/// A body of a resource: its members and what older versions keep elsewhere.
#[derive(Debug)]
pub struct Body {
    pub members: &'static [Member],
    pub moves: &'static [Move],
}

const OLDEST: ApiVersion = ApiVersion::OLDEST;

impl Member {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            since: OLDEST,
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
    pub const fn object(name: &'static str, members: &'static [Member]) -> Self {
        Self::new(name, Kind::Object(members, Presence::Always))
    }

    /// An object that is there when it was sent.
    pub const fn optional(name: &'static str, members: &'static [Member]) -> Self {
        Self::new(name, Kind::Object(members, Presence::Optional))
    }

    pub const fn list(name: &'static str, item: &'static Kind) -> Self {
        Self::new(name, Kind::List { item, min: 0, max: None })
    }

    pub const fn map(name: &'static str, value: &'static Kind) -> Self {
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

    pub const fn since(mut self, version: ApiVersion) -> Self {
        self.since = version;
        self
    }

    pub const fn until(mut self, version: ApiVersion) -> Self {
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
    pub const fn updatable_from(mut self, version: ApiVersion) -> Self {
        self.access = Access::Create;
        self.opened = Some((version, Access::Update));
        self
    }

    pub const fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    pub const fn required(self) -> Self {
        self.required_from(OLDEST)
    }

    pub const fn required_from(mut self, version: ApiVersion) -> Self {
        self.required = Some(version);
        self
    }

    /// Says more about a missing one to callers of versions up to this one.
    pub const fn hint_until(mut self, version: ApiVersion, text: &'static str) -> Self {
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

    pub const fn null_refused_from(mut self, version: ApiVersion) -> Self {
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

    pub fn is_known(&self, version: ApiVersion) -> bool {
        self.since <= version && self.until.is_none_or(|until| version <= until)
    }

    pub fn is_required(&self, version: ApiVersion) -> bool {
        self.required.is_some_and(|from| from <= version)
    }

    pub fn access(&self, version: ApiVersion) -> Access {
        match self.opened {
            Some((from, access)) if from <= version => access,
            _ => self.access,
        }
    }
}

#[cfg(test)]
mod tests;
