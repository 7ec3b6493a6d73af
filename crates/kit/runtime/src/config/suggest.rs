//! "Did you mean".

/// The candidate closest to `text`, if one is close enough to be what was meant.
pub(super) fn closest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(text, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cb, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let here = (*cell + 1).min(left + 1).min(diagonal + usize::from(ca != *cb));
            diagonal = *cell;
            *cell = here;
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (a, b, expected) in
            [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn only_a_close_name_is_suggested() {
        let keys = ["frontend.listen", "frontend.location"];
        assert_eq!(closest("frontend.lisen", keys), Some("frontend.listen"));
        assert_eq!(closest("backend.workers", keys), None);
    }
}
