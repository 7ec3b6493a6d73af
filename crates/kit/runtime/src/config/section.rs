//! One table of the configuration, and the proof that it was checked.

use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ConfigProblems, Problems, Profile};

/// One key of a table, as the reference documents it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key's name inside its table.
    pub name: &'static str,
    /// What it means, one or more sentences.
    pub doc: String,
}

/// What the [`section!`](crate::section) macro derives: the table's name and its documented keys.
pub trait Described {
    /// The table's name in the file.
    const TABLE: &'static str;
    /// What the table is about.
    fn about() -> String;
    /// Every key, in declaration order.
    fn keys() -> Vec<Key>;
}

/// One configuration table. Declare it with [`section!`](crate::section) and say here what is not allowed.
pub trait Section:
    Described + Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static
{
    /// Values a profile sets; by default none.
    fn profile(_profile: Profile) -> toml::Table {
        toml::Table::new()
    }

    /// Adds a problem for everything that is wrong with these values.
    fn examine(&self, _problems: &mut Problems) {}

    /// Checks the values; the only way to a [`Checked`] section.
    fn check(self) -> Result<Checked<Self>, ConfigProblems> {
        let mut problems = Problems::of(Self::TABLE);
        self.examine(&mut problems);
        problems.into_result().map(|()| Checked(self))
    }
}

/// A section that passed its check.
#[derive(Debug, Clone)]
pub struct Checked<T>(T);

impl<T> Checked<T> {
    /// Takes the section out.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Declares a configuration section: a struct whose every field has a doc line and a default.
///
/// ```
/// use aro_runtime::{Problems, Section};
///
/// aro_runtime::section! {
///     /// The ARM front end.
///     pub struct FrontendConfig in "frontend" {
///         /// Where the ARM API listens.
///         pub listen: std::net::SocketAddr = ([127, 0, 0, 1], 8443).into(),
///         /// The Azure region this instance serves.
///         pub location: String = "uksouth".to_owned(),
///     }
/// }
///
/// impl Section for FrontendConfig {
///     fn examine(&self, problems: &mut Problems) {
///         if self.location.is_empty() {
///             problems.add("location", "must not be empty");
///         }
///     }
/// }
/// ```
///
/// Fields are any serde type; the usual ones are `SocketAddr`, `String`, `bool`, numbers, `Option<…>`,
/// [`Period`](crate::Period) (`"30s"`), [`ByteSize`](crate::ByteSize) (`"8MiB"`), `PathBuf` and
/// [`SecretFile`](crate::config::SecretFile) in keys that end in `_file`. The calling crate needs `serde`.
#[macro_export]
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident in $table:literal {
            $(
                $(#[doc = $doc:literal])+
                $field_vis:vis $field:ident : $ty:ty = $default:expr
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        $vis struct $name {
            $( $(#[doc = $doc])+ $field_vis $field: $ty, )*
        }

        impl ::std::default::Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $crate::Described for $name {
            const TABLE: &'static str = $table;

            fn about() -> ::std::string::String {
                concat!($($about, "\n"),+).trim().to_owned()
            }

            fn keys() -> ::std::vec::Vec<$crate::Key> {
                ::std::vec![ $(
                    $crate::Key { name: stringify!($field), doc: concat!($($doc, "\n"),+).trim().to_owned() }
                ),* ]
            }
        }
    };
}
