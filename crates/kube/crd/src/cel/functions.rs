//! The libraries that rules may call: CEL's standard ones, its string, list and set extensions, and Kubernetes'
//! own. A function is found by its name, by how it is called and by the number of its arguments; the types of the
//! arguments are looked at when it runs.

pub(crate) mod arithmetic;
pub(crate) mod base64;
pub(crate) mod conversions;
pub(crate) mod lists;
pub(crate) mod named_formats;
pub(crate) mod net;
pub(crate) mod optional;
pub(crate) mod quantity;
pub(crate) mod semver;
pub(crate) mod sets;
pub(crate) mod strings;
pub(crate) mod time;
pub(crate) mod url;

use crate::cel::eval::{Failure, Res, no_overload};
use crate::cel::value::Val;

/// A library function. A receiver is its first argument.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) run: Run,
    /// Compares every member of one argument with every member of another.
    pub(crate) compares_all: bool,
    /// Compiles its second argument as a regular expression, every time it is called.
    pub(crate) compiles: bool,
}

pub(crate) type Run = for<'a> fn(&[Val<'a>]) -> Res<'a>;

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Function")
    }
}

/// Names before a dot that belong to a function's name.
pub(crate) fn is_namespace(name: &str) -> bool {
    matches!(name, "sets" | "optional" | "strings" | "ip" | "format" | "lists")
}

/// Finds a function. `member`: it is called on a receiver, which is not counted in `args`.
pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Function> {
    let libraries = [
        conversions::find,
        strings::find,
        lists::find,
        sets::find,
        time::find,
        optional::find,
        net::find,
        url::find,
        quantity::find,
        semver::find,
        named_formats::find,
    ];
    let run = libraries.iter().find_map(|library| library(name, member, args))?;
    Some(Function {
        run,
        compares_all: name.starts_with("sets."),
        compiles: matches!(name, "matches" | "find" | "findAll"),
    })
}

/// A failure for arguments of wrong types.
pub(crate) fn wrong<'a>(function: &str, args: &[Val<'_>]) -> Res<'a> {
    Err(no_overload(function, &args.iter().collect::<Vec<_>>()))
}

/// An error of the language.
pub(crate) fn fail<'a>(text: impl Into<String>) -> Res<'a> {
    Err(Failure::error(text))
}
