//! To come.

use aro_runtime::Scope;

use crate::context::Context;

pub fn start(_context: &Context, _scope: &Scope) {}
