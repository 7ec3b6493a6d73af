//! What is wrong with malformed JSON, in the words of Go's scanner.

use serde_json::error::Category;

/// The text for an error of our parser.
pub(super) fn message(error: &serde_json::Error, bytes: &[u8]) -> String {
    if error.classify() == Category::Eof {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    let place = [
        ("expected value", "looking for beginning of value"),
        ("trailing characters", "after top-level value"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        ("expected `:`", "after object key"),
        ("key must be a string", "looking for beginning of object key string"),
        ("trailing comma", "looking for beginning of object key string"),
        ("control character", "in string literal"),
        ("invalid escape", "in string escape code"),
        ("invalid number", "in numeric literal"),
    ]
    .into_iter()
    .find_map(|(ours, theirs)| text.starts_with(ours).then_some(theirs));
    match (place, byte_at(bytes, error.line(), error.column())) {
        (Some(place), Some(byte)) => format!("invalid character {} {place}", quoted(byte)),
        _ => text,
    }
}

/// Line and column count from one; the column is that of the last byte read.
fn byte_at(bytes: &[u8], line: usize, column: usize) -> Option<u8> {
    let start = match line.checked_sub(2) {
        None => 0,
        Some(breaks) => bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(breaks)?.0 + 1,
    };
    bytes.get(start + column.checked_sub(1)?).copied()
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x20..=0x7e => format!("'{}'", char::from(byte)),
        byte if byte < 0x20 || byte == 0x7f => format!("'\\x{byte:02x}'"),
        byte => format!("'{}'", char::from(byte)),
    }
}
