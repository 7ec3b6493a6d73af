//! `docs/config.md`: every key of every section.

use std::fmt::Write as _;

use aro_app::Registry;
use aro_runtime::config::{SPECIAL, Target};

use super::BANNER;

const INTRODUCTION: &str = "\
# Configuration

Values are merged in this order, the later wins: defaults, the profile (`--profile dev` or `prod`), the file
(`--config FILE`, TOML, one table per section), environment variables, flags (`--set table.key=value`).

Durations are written `250ms`, `30s`, `5m`, `2h`; sizes `512B`, `64KiB`, `8MiB`, `1GiB`. Keys that end in `_file` name a
file that holds a secret. Unknown keys are errors. `aro config print` shows every value and where it comes from;
`aro config check` lists everything that is wrong. Changes need a restart.
";

pub fn text(registry: Registry) -> String {
    let mut text = format!("{BANNER}\n\n{INTRODUCTION}");
    // Writing to a String cannot fail.
    for section in aro_app::schema(registry).reference() {
        let _ = write!(text, "\n## `[{}]`\n\n{}\n\n", section.table, flat(&section.about));
        text.push_str("| key | default | variable | meaning |\n|---|---|---|---|\n");
        for key in &section.keys {
            let mut default =
                key.default.as_ref().map_or_else(|| "not set".to_owned(), |value| format!("`{value}`"));
            for (profile, value) in &key.profiles {
                let _ = write!(default, "; {profile}: `{value}`");
            }
            let _ =
                writeln!(text, "| `{}` | {default} | `{}` | {} |", key.name, key.variable, flat(&key.doc));
        }
    }
    text.push_str("\n## Other environment variables\n\n| variable | meaning |\n|---|---|\n");
    for special in SPECIAL {
        let alias = match special.target {
            Target::Key(key) => format!(" Stands for `{key}`."),
            Target::Bootstrap => String::new(),
        };
        let _ = writeln!(text, "| `{}` | {}{alias} |", special.name, special.doc);
    }
    text
}

/// Doc comments as one line, fit for a table cell.
fn flat(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
