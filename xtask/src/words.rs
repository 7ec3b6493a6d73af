//! `cargo xtask check-words`: refuses words that hide the component they speak of.
//!
//! Operators read logs, metric help, errors and documents at 3 a.m.; a sentence about "nobody" sends them to the source.
//! The rule: name the component, and use the verb of the field.
//!
//! Two tiers. Text that operators read (documents, the strings of the program, configuration keys) has no exception. The
//! comments and names of code that was written before the rule are counted per file in `xtask/words-baseline.txt`; a count
//! may only shrink, and `--write` lowers it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// The counts of code that is not clean yet.
const BASELINE: &str = "xtask/words-baseline.txt";

/// The words, in lower case; matched on word boundaries, also inside `snake_case` names.
const WORDS: [&str; 8] =
    ["nobody", "somebody", "whoever", "whomever", "is told", "says so", "looked after", "taken away"];

/// Files that list the words themselves.
const OWN: [&str; 2] = ["xtask/src/words.rs", BASELINE];

/// One use of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    line: usize,
    word: &'static str,
    /// Whether operators read it.
    operator: bool,
}

/// Checks every file that git tracks; with `write` lowers the baseline first.
pub fn run(root: &Path, write: bool) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    let mut counts = BTreeMap::new();
    for path in tracked(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        let uses = uses(&path, &text);
        for found in uses.iter().filter(|found| found.operator) {
            complaints.push(format!("{path}:{}: operators read \"{}\"", found.line, found.word));
        }
        let others = uses.iter().filter(|found| !found.operator).count();
        if others > 0 {
            counts.insert(path, others);
        }
    }
    let baseline = parse(&std::fs::read_to_string(root.join(BASELINE)).unwrap_or_default())?;
    if write {
        let lowered = lower(&baseline, &counts);
        std::fs::write(root.join(BASELINE), print(&lowered)).context(BASELINE)?;
        complaints.extend(compare(&lowered, &counts));
    } else {
        complaints.extend(compare(&baseline, &counts));
    }
    Ok(complaints)
}

fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git").args(["ls-files"]).current_dir(root).output().context("run git")?;
    ensure!(output.status.success(), "git ls-files failed");
    let files = String::from_utf8(output.stdout).context("file names are UTF-8")?;
    Ok(files.lines().filter(|path| is_checked(path)).map(str::to_owned).collect())
}

/// Text that people write; not tables, recordings, lock files, nor migrations, which never change once released.
fn is_checked(path: &str) -> bool {
    let kinds = [".rs", ".md", ".toml", ".sh", "Makefile", ".ci/run", ".ci/deps"];
    kinds.iter().any(|kind| path.ends_with(kind))
        && !path.contains("/gen/")
        && !path.contains("/golden/")
        && !OWN.contains(&path)
}

fn uses(path: &str, text: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let plain = line.to_lowercase().replace('_', " ");
        for word in WORDS {
            for at in occurrences(&plain, word) {
                found.push(Use { line: index + 1, word, operator: operators_read(path, line, at) });
            }
        }
    }
    found
}

/// The places of a word in a text, in bytes.
fn occurrences(text: &str, word: &str) -> Vec<usize> {
    let boundary = |character: Option<char>| character.is_none_or(|one| !one.is_alphanumeric());
    let whole = |at: &usize| {
        boundary(text[..*at].chars().next_back()) && boundary(text[at + word.len()..].chars().next())
    };
    text.match_indices(word).map(|(at, _)| at).filter(whole).collect()
}

/// Whether operators read what stands there: documents, scripts, and the strings and configuration keys of the program.
fn operators_read(path: &str, line: &str, at: usize) -> bool {
    if Path::new(path).extension().is_none_or(|extension| extension != "rs") {
        return true;
    }
    if path.starts_with("test/") || path.contains("/tests/") || path.ends_with("tests.rs") {
        return false;
    }
    let code = line.trim_start();
    if code.starts_with("///") {
        // The documentation of a configuration section and of a command is printed.
        return path.ends_with("config.rs") || path.ends_with("cli.rs");
    }
    if code.starts_with("//") {
        return false;
    }
    // `line` and its lower-case copy have the same length in ASCII, which is where it matters.
    let before = line.get(..at).unwrap_or(line);
    before.matches('"').count() % 2 == 1
}

fn parse(text: &str) -> anyhow::Result<BTreeMap<String, usize>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (count, path) =
                line.split_once(' ').with_context(|| format!("`{line}` is not `count path`"))?;
            Ok((path.to_owned(), count.parse().with_context(|| format!("the count in `{line}`"))?))
        })
        .collect()
}

fn print(baseline: &BTreeMap<String, usize>) -> String {
    let mut text =
        "# Uses of refused words per file, in comments and names. Counts may only shrink.\n".to_owned();
    for (path, count) in baseline {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{count} {path}");
    }
    text
}

/// The baseline with every count that shrank; without a baseline, the counts.
fn lower(baseline: &BTreeMap<String, usize>, counts: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    if baseline.is_empty() {
        return counts.clone();
    }
    let kept = baseline.iter().filter_map(|(path, old)| {
        let new = counts.get(path)?;
        Some((path.clone(), *old.min(new)))
    });
    kept.collect()
}

fn compare(baseline: &BTreeMap<String, usize>, counts: &BTreeMap<String, usize>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, count) in counts {
        let allowed = baseline.get(path).copied().unwrap_or(0);
        if *count > allowed {
            complaints.push(format!(
                "{path}: {count} refused words, {allowed} in {BASELINE}; name the component and use the verb of the field"
            ));
        }
    }
    for (path, allowed) in baseline {
        if counts.get(path).copied().unwrap_or(0) < *allowed {
            complaints.push(format!("{path} has become cleaner; run `cargo xtask check-words --write`"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, bool)> {
        uses(path, text).into_iter().map(|found| (found.line, found.operator)).collect()
    }

    #[test]
    fn words_are_found_in_prose_and_in_names_but_not_inside_other_words() {
        assert_eq!(
            found("crates/a/src/b.rs", "// Nobody\nfn nobody_asks() {}\nlet somebodys = 1;"),
            [(1, false), (2, false)]
        );
    }

    #[test]
    fn documents_logs_and_configuration_are_read_by_operators() {
        for (path, text) in [
            ("docs/a.md", "the agent is told"),
            ("crates/a/src/b.rs", "    tracing::warn!(\"nobody answers\");"),
            ("crates/a/src/config.rs", "        /// Whoever listens."),
            ("Makefile", "# whoever"),
        ] {
            assert_eq!(found(path, text), [(1, true)], "{path}");
        }
        for (path, text) in [
            ("crates/a/src/b.rs", "/// Whoever listens."),
            ("crates/a/src/b.rs", "let a = \"b\"; // nobody"),
            ("test/a/src/b.rs", "say(\"nobody\");"),
            ("crates/a/tests/it/b.rs", "say(\"nobody\");"),
        ] {
            assert_eq!(found(path, text), [(1, false)], "{path}");
        }
    }

    #[test]
    fn a_count_may_shrink_and_not_grow() {
        let of = |count| BTreeMap::from([("a.rs".to_owned(), count)]);
        assert!(compare(&of(2), &of(2)).is_empty());
        assert!(compare(&of(2), &of(3))[0].starts_with("a.rs: 3 refused words, 2 in"));
        assert!(compare(&BTreeMap::new(), &of(1))[0].starts_with("a.rs: 1 refused words, 0 in"));
        assert!(compare(&of(2), &of(1))[0].contains("cleaner"));
        assert_eq!(lower(&of(2), &of(1)), of(1));
        assert_eq!(lower(&of(2), &of(3)), of(2));
        assert_eq!(lower(&of(2), &BTreeMap::new()), BTreeMap::new());
    }

    #[test]
    fn the_baseline_reads_what_it_writes() {
        let baseline = BTreeMap::from([("a b.rs".to_owned(), 3), ("c.rs".to_owned(), 1)]);
        assert_eq!(parse(&print(&baseline)).unwrap(), baseline);
    }
}
