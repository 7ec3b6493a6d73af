//! `docs/cli.md`: every command and every option.

use std::fmt::Write as _;

use aro_app::Registry;
use clap::{Arg, Command};

use super::BANNER;
use crate::cli;

pub fn text(registry: Registry) -> String {
    let mut cli = cli::command(registry);
    cli.build();
    let mut text = format!("{BANNER}\n\n# Command line\n\n{}\n", about(&cli));
    for command in cli.get_subcommands() {
        describe(&mut text, "aro", command);
    }
    text
}

fn describe(text: &mut String, parent: &str, command: &Command) {
    if command.is_hide_set() {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    // Writing to a String cannot fail.
    let _ = write!(text, "\n## `{name}`\n\n{}\n", about(command));
    let options: Vec<&Arg> =
        command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help").collect();
    if !options.is_empty() {
        text.push_str("\n| option | meaning |\n|---|---|\n");
        for option in options {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "| `{}` | {help} |", usage(option));
        }
    }
    for inner in command.get_subcommands() {
        describe(text, &name, inner);
    }
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn usage(option: &Arg) -> String {
    let flag = option.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    match option.get_value_names() {
        Some(names) if option.get_action().takes_values() => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            format!("{flag} {}", names.join(" "))
        }
        _ => flag,
    }
}
