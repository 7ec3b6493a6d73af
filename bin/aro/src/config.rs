//! `aro config print` and `aro config check`.

use std::fmt::Write as _;
use std::process::ExitCode;

use aro_app::Registry;
use aro_runtime::config::{ConfigProblems, PrintedKey};

use crate::cli::{ConfigArgs, ConfigCommand};
use crate::output::{complain, say};

pub fn run(args: ConfigArgs) -> ExitCode {
    match args.command {
        ConfigCommand::Print(sources) => match aro_app::schema(Registry::ARO).load(&sources.sources(None)) {
            Ok(loaded) => say(&printed(&loaded.print())),
            Err(problems) => return refused(&problems),
        },
        ConfigCommand::Check(sources) => match aro_app::schema(Registry::ARO).load(&sources.sources(None)) {
            Ok(_) => say("ok"),
            Err(problems) => return refused(&problems),
        },
    }
    ExitCode::SUCCESS
}

/// Valid TOML: what is printed can be used as a file.
fn printed(keys: &[PrintedKey]) -> String {
    let width = keys.iter().map(|key| line(key).len()).max().unwrap_or(0).min(60);
    let mut text = String::new();
    let mut table = "";
    for key in keys {
        let (of, _) = key.key.split_once('.').unwrap_or_default();
        if of != table {
            table = of;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}[{table}]", if text.is_empty() { "" } else { "\n" });
        }
        let _ = writeln!(text, "{:width$}  # {}", line(key), key.origin);
    }
    text
}

fn line(key: &PrintedKey) -> String {
    let (_, name) = key.key.split_once('.').unwrap_or_default();
    match &key.value {
        Some(value) => format!("{name} = {value}"),
        None => format!("# {name} is not set"),
    }
}

fn refused(problems: &ConfigProblems) -> ExitCode {
    for problem in problems.iter() {
        complain(&problem.to_string());
    }
    ExitCode::FAILURE
}
