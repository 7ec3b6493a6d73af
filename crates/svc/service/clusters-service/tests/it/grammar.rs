//! The search grammar beside that of the original.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::peers;

/// Searches on which both must agree.
const SAME: &[&str] = &[
    "name = 'x'",
    "name='x'",
    "name != 'x' and region = 'y'",
    "name <> 'x' or region = 'y' and z = 1",
    "not name = 'x'",
    "(name = 'x')",
    "((name = 'x') or (name = 'y')) and not (z > 1)",
    "azure.subscription_id = 'x' and azure.resource_group_name = 'y'",
    "a.b = 'c'",
    "name like 'x%'",
    "name ilike '%X%'",
    "name not like 'x%'",
    "name not ilike 'x%'",
    "name in ('a', 'b')",
    "name not in ('a')",
    "n in (1, 2)",
    "n between 1 and 2",
    "n not between 1 and 2",
    "name is null",
    "name is not null",
    "n = 1.5",
    "n > 1 and n >= 2 and n < 3 and n <= 4",
    "NAME = 'x' AND b = 'y'",
    "name LIKE 'x%' Or b = 'y'",
    "enabled = 't'",
    "name = 'it''s'",
    "name = ''",
    "",
    "name",
    "name =",
    "= 'x'",
    "name = 'x",
    "(name = 'x'",
    "name = 'x')",
    "name = 'x' and",
    "and name = 'x'",
    "name in 'x'",
    "name between 1",
    "name == 'x'",
    "name = 'x' name = 'y'",
    "name is",
];

/// Searches that the original accepts and we refuse: its parser passes over what it does not expect, and the search would find
/// something else than what it says.
const REFUSED: &[&str] = &["name in ()"];

#[test]
fn what_is_refused_beyond_the_original_is_known() {
    for search in REFUSED {
        assert!(aro_ocm::search::parse(search).is_err(), "{search}");
    }
}

#[test]
fn the_grammar_agrees_with_the_original() {
    let Some(binaries) = peers::binaries() else { return };
    let mut child = Command::new(binaries.join("tsl-check"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the original's grammar runs");
    let mut input = child.stdin.take().expect("its input");
    for search in SAME {
        writeln!(input, "{search}").expect("sent");
    }
    drop(input);
    let output = child.wait_with_output().expect("its answers");
    let answers: Vec<String> =
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), SAME.len());
    let differing: Vec<String> = SAME
        .iter()
        .zip(answers)
        .filter(|(search, answer)| aro_ocm::search::parse(search).is_ok() != (answer == "yes"))
        .map(|(search, answer)| format!("`{search}`: the original says {answer}"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
