//! SQL's patterns: `%` is any text, `_` any character, a backslash takes the next character literally.

/// Whether text matches a pattern. Linear in text times pattern, whatever they hold.
pub fn like(text: &str, pattern: &str, ignore_case: bool) -> bool {
    let fold = |c: char| if ignore_case { c.to_ascii_lowercase() } else { c };
    let text: Vec<char> = text.chars().map(fold).collect();
    let pattern = steps(pattern, fold);
    let (mut at, mut step) = (0, 0);
    // Where to go on if what follows the last `%` does not fit: it takes one character more.
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(step) {
            Some(Step::Any) => {
                retry = Some((at, step + 1));
                step += 1;
            }
            Some(Step::One) => (at, step) = (at + 1, step + 1),
            Some(Step::Exactly(c)) if *c == text[at] => (at, step) = (at + 1, step + 1),
            _ => {
                let Some((from, after)) = retry else { return false };
                retry = Some((from + 1, after));
                (at, step) = (from + 1, after);
            }
        }
    }
    pattern[step..].iter().all(|step| matches!(step, Step::Any))
}

/// The pattern as every backend takes it: one that ends in the middle of an escape ends in a plain backslash instead.
pub fn like_pattern(pattern: &str) -> String {
    let escapes = pattern.chars().rev().take_while(|c| *c == '\\').count();
    if escapes % 2 == 1 { format!("{pattern}\\") } else { pattern.to_owned() }
}

enum Step {
    Any,
    One,
    Exactly(char),
}

fn steps(pattern: &str, fold: impl Fn(char) -> char) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        steps.push(match c {
            '%' => Step::Any,
            '_' => Step::One,
            '\\' => Step::Exactly(chars.next().map_or('\\', &fold)),
            c => Step::Exactly(fold(c)),
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_sql() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "a_c", true),
            ("abc", "%b%", true),
            ("abc", "b", false),
            ("aXbXc", "a%X_", true),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("a\\", "a\\", true),
            ("ü", "_", true),
            ("aaaaaaaaaaaaaaaaaaaaaaaa", "%a%a%a%a%a%a%a%a%b", false),
        ] {
            assert_eq!(like(text, pattern, false), expected, "{text} like {pattern}");
        }
        assert!(like("AbC", "aB_", true) && !like("AbC", "aB_", false));
        assert!(!like("Ü", "ü", true), "only ASCII case is ignored");
        assert_eq!(like_pattern("a\\"), "a\\\\");
        assert_eq!(like_pattern("a\\\\"), "a\\\\");
    }
}
