//! How deep JSON may nest.
//!
//! The JSON parser of this workspace refuses what nests deeper than 128 levels, so a document that is stored deeper can
//! never be read again. Input that is parsed once stays below that; what makes it deeper is wrapping (a list around an
//! object, a document around a bundle), patching, managed fields, and other encodings. So depth is checked where a
//! document is written.

use serde_json::Value;

/// The deepest document that is written. What is left below the parser's limit is room for what readers wrap around it:
/// lists, watch events, bundles.
pub const MAX_DEPTH: usize = 116;

/// Whether a value has more levels of objects and arrays than this. The recursion stops there.
pub fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let deeper = |inner: &Value| levels.checked_sub(1).is_none_or(|levels| is_deeper_than(inner, levels));
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(deeper),
        Value::Object(members) => levels == 0 || members.values().any(deeper),
        _ => false,
    }
}

/// The same for JSON as text. Whether it is JSON is not looked at.
pub fn is_text_deeper_than(json: &[u8], levels: usize) -> bool {
    let mut depth = 0_usize;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > levels {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => drop(bytes.next()),
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn value_and_text_have_the_same_depth() {
        for (value, depth) in [
            (json!(1), 0),
            (json!("[[[{{{\"\\"), 0),
            (json!([]), 1),
            (json!({"a": [1, {"b": "}"}]}), 3),
            (json!([[[]], {"x\"[": {}}]), 3),
        ] {
            for levels in 0..5 {
                assert_eq!(is_deeper_than(&value, levels), depth > levels, "{value} {levels}");
                assert_eq!(
                    is_text_deeper_than(value.to_string().as_bytes(), levels),
                    depth > levels,
                    "{value} {levels}"
                );
            }
        }
    }

    #[test]
    fn the_deepest_document_can_be_read_with_what_is_wrapped_around_it() {
        let wrapped = MAX_DEPTH + 10;
        let text = format!("{}{}", "[".repeat(wrapped), "]".repeat(wrapped));
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
}
