//! `aro version`.

use std::process::ExitCode;

use crate::output::say;

pub fn run() -> ExitCode {
    say(concat!("aro ", env!("CARGO_PKG_VERSION")));
    ExitCode::SUCCESS
}
