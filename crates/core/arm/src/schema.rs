//! What a member is, as data; and the engine that reads bodies by it.
//!
//! A resource's body is a table of [`Member`]s: name, kind, limits, the api-versions that know it, access,
//! the meaning of an absent one. Tables describe the newest shape; the few members that older versions keep elsewhere
//! are listed as [`Move`]s.
//!
//! - [`read`](read::read): body + table → canonical JSON, and every problem on the way. The result always fits the
//!   typed structs, whatever was sent, so that the rules across members can run even when single members are wrong.
//! - [`immutable`](compare::immutable): create-only members that changed.
//! - [`Projection`](project::Projection): canonical JSON → the members a version knows.
//!
//! What it is not: rules across members. Those are functions over typed structs, beside each resource.

pub mod compare;
mod member;
pub mod moves;
pub mod problems;
pub mod project;
pub mod read;

use std::fmt::Debug;
use std::sync::LazyLock;

use regex::Regex;

pub use moves::Move;

/// The api-versions of a provider, ordered by age: a later one is greater.
///
/// A table is written for one such type, so that a member cannot name a version its provider does not serve.
pub trait Version: Copy + Ord + Debug + Send + Sync + 'static {
    /// Every version served, oldest first.
    const ALL: &'static [Self];
    /// The first of [`Self::ALL`].
    const OLDEST: Self;
}

/// One member of an object.
#[derive(Debug, Clone, Copy)]
pub struct Member<V: Version> {
    pub name: &'static str,
    pub kind: Kind<V>,
    /// The first api-version that knows it.
    pub since: V,
    /// The last one, where it was dropped.
    pub until: Option<V>,
    pub access: Access,
    /// A wider access than `access`, from that version on.
    pub opened: Option<(V, Access)>,
    /// The first version that requires it.
    pub required: Option<V>,
    /// A hint for callers of versions up to this one that omit it.
    pub hint: Option<(V, &'static str)>,
    /// What an omitted one means.
    pub default: Option<Scalar>,
    /// What it is when it was made by a version that does not know it.
    pub initial: Option<Scalar>,
    /// What a replace that omits it does.
    pub omitted: Omitted,
    /// The first version that refuses an explicit `null`; otherwise `null` is like omitting it.
    pub null_refused: Option<V>,
    /// Compared as a whole, and reported as a whole, when a create-only part of it changes.
    pub atomic: bool,
}

/// The kinds of value, with the limits a value of that kind can have on its own.
#[derive(Debug, Clone, Copy)]
pub enum Kind<V: Version> {
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
    Object(&'static [Member<V>], Presence),
    List {
        item: &'static Kind<V>,
        min: usize,
        max: Option<usize>,
    },
    /// A map from free names.
    Map(&'static Kind<V>),
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

/// Write access to a member.
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

/// A pattern, compiled once, and the text of its error.
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
        pub static $name: $crate::schema::Pattern =
            $crate::schema::Pattern::new($text, $why, || regex::Regex::new($text).ok());
    };
}
pub(crate) use pattern;

/// A body of a resource: its members and what older versions keep elsewhere.
#[derive(Debug)]
pub struct Body<V: Version> {
    pub members: &'static [Member<V>],
    pub moves: &'static [Move<V>],
}

#[cfg(test)]
mod tests;
