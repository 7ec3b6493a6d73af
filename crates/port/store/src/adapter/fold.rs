//! Comparing without case, and ranges that stand for prefixes.

/// Lower-cases text character by character. Unlike `str::to_lowercase` the result of a prefix is a prefix of the
/// result (no rule looks at the neighbours), which prefix queries rely on.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The first text, in byte order, that is greater than everything starting with `prefix`. `None` when nothing is.
///
/// A half-open range needs no escaping, so `%` and `_` mean themselves, and any index serves it.
pub fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // UTF-8 keeps the order of code points, so the next character is the next in byte order too.
        if let Some(next) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_keeps_prefixes() {
        for text in ["/Subscriptions/ÄÖ", "ΑΣ", "ΑΣΑ", "İstanbul", "plain"] {
            for (at, _) in text.char_indices() {
                assert!(fold(text).starts_with(&fold(&text[..at])), "{text} at {at}");
            }
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_just_behind_all_that_start_with_it() {
        assert_eq!(prefix_end("a/b").as_deref(), Some("a/c"));
        assert_eq!(prefix_end("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(prefix_end("\u{D7FF}").as_deref(), Some("\u{E000}"));
        assert_eq!(prefix_end("\u{10FFFF}"), None);
        assert_eq!(prefix_end(""), None);
    }
}
