//! The command's answer on stdout, and complaints on stderr.

use std::io::Write as _;

/// Prints to stdout. A reader that went away (`aro config print | head`) is no error.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", text.trim_end_matches('\n'));
    let _ = out.flush();
}

/// Prints to stderr.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
