//! Configuration: typed tables, merged from five places, checked before anything runs.
//!
//! Precedence, lowest first: defaults, profile (`dev` or `prod`), the TOML file, environment variables, flags.
//! Every part of the process declares one [`Section`] (one TOML table) with the [`section!`](crate::section)
//! macro; the composition registers them in a [`Schema`] and calls [`Schema::load`].
//!
//! What it is not: global. The result is passed on as [`Checked`] sections.
//!
//! Invariants:
//! * Unknown keys are errors, wherever they come from, with a suggestion when one is close.
//! * All problems are reported at once, each with its key and where the value came from.
//! * A [`Checked`] value can only be made by [`Section::check`]; a role never sees an unchecked one.
//! * Secrets are read from files ([`SecretFile`]) and are no part of the merged values.

mod layers;
mod print;
mod problems;
mod schema;
mod secret_file;
mod section;
mod suggest;
#[cfg(test)]
mod tests;
mod units;
mod variables;

pub use layers::{Origin, Profile, Sources, UnknownProfile};
pub use print::{PrintedKey, redacted};
pub use problems::{ConfigProblems, Problem, Problems};
pub use schema::{DocumentedKey, DocumentedSection, Loaded, Schema};
pub use secret_file::{SecretFile, SecretFileError};
pub use section::{Checked, Described, Key, Section};
pub use units::{ByteSize, Period, UnitError};
pub use variables::{SPECIAL, SpecialVariable, Target, variable_for};
