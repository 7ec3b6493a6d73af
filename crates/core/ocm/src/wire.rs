//! Declarations of wire types: one line for each member gives the Rust field, its serde form and its row in the type's table.

use std::collections::BTreeMap;

use serde_json::Value;

/// What JSON a member holds.
#[derive(Debug)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A number without fraction.
    Integer,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A time as in RFC 3339.
    Date,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// An object of a declared type.
    Object(&'static Object),
    /// A list.
    List(&'static Shape),
    /// An object with free names.
    Map(&'static Shape),
    /// Any JSON.
    Any,
}

/// A declared type.
#[derive(Debug)]
pub struct Object {
    /// Its name, as in the OpenAPI document.
    pub name: &'static str,
    /// Its members.
    pub members: &'static [Member],
}

/// A member of a type.
#[derive(Debug)]
pub struct Member {
    /// The name as Rust writes it.
    pub raw_name: &'static str,
    /// What it holds.
    pub shape: &'static Shape,
}

impl Member {
    /// The name on the wire.
    pub fn name(&self) -> &'static str {
        self.raw_name.strip_prefix("r#").unwrap_or(self.raw_name)
    }
}

/// A type with a known JSON shape.
pub trait Described {
    /// The shape.
    const SHAPE: &'static Shape;
}

macro_rules! described {
    ($($type:ty = $shape:expr;)*) => {
        $(impl Described for $type { const SHAPE: &'static Shape = &$shape; })*
    };
}

described! {
    bool = Shape::Bool;
    i64 = Shape::Integer;
    u64 = Shape::Integer;
    String = Shape::Text;
    Value = Shape::Any;
}

impl<T: Described> Described for Vec<T> {
    const SHAPE: &'static Shape = &Shape::List(T::SHAPE);
}

impl<T: Described> Described for BTreeMap<String, T> {
    const SHAPE: &'static Shape = &Shape::Map(T::SHAPE);
}

impl<T: Described> Described for Box<T> {
    const SHAPE: &'static Shape = T::SHAPE;
}

/// Declares wire objects. Every member is optional and left out when absent.
macro_rules! objects {
    ($($(#[$meta:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
            #[serde(default)]
            pub struct $name {
                $($(#[$about])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
            }

            impl $crate::wire::Described for $name {
                const SHAPE: &'static $crate::wire::Shape = &$crate::wire::Shape::Object(&$crate::wire::Object {
                    name: stringify!($name),
                    members: &[$($crate::wire::Member {
                        raw_name: stringify!($field),
                        shape: <$type as $crate::wire::Described>::SHAPE,
                    }),*],
                });
            }
        )*
    };
}

/// Declares closed sets of words.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$about:meta])* $word:ident = $text:literal,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
            pub enum $name {
                $($(#[$about])* #[serde(rename = $text)] $word,)*
            }

            impl $name {
                /// All of them.
                pub const ALL: &'static [Self] = &[$(Self::$word),*];

                /// The word on the wire.
                pub const fn as_str(self) -> &'static str {
                    match self { $(Self::$word => $text),* }
                }

                /// The value of a word on the wire.
                pub fn of(text: &str) -> Option<Self> {
                    match text { $($text => Some(Self::$word),)* _ => None }
                }
            }

            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(self.as_str())
                }
            }

            impl $crate::wire::Described for $name {
                const SHAPE: &'static $crate::wire::Shape = &$crate::wire::Shape::Word(&[$($text),*]);
            }
        )*
    };
}
