//! The order of lists: `field [asc|desc]`, separated by commas.

/// One sort key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderKey {
    /// The field, with dots.
    pub field: String,
    /// Largest first.
    pub descending: bool,
}

/// The sort keys of one list.
const MAX_KEYS: usize = 8;

/// Parses an order; a blank one is none.
pub fn order(text: &str) -> Result<Vec<OrderKey>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<&str> = text.split(',').collect();
    if keys.len() > MAX_KEYS {
        return Err(format!("more than {MAX_KEYS} fields"));
    }
    keys.into_iter().map(one).collect()
}

fn one(text: &str) -> Result<OrderKey, String> {
    let mut words = text.split_whitespace();
    let (Some(field), direction, None) = (words.next(), words.next(), words.next()) else {
        return Err("a field and perhaps asc or desc are expected".to_owned());
    };
    let descending = match direction {
        None => false,
        Some(word) if word.eq_ignore_ascii_case("asc") => false,
        Some(word) if word.eq_ignore_ascii_case("desc") => true,
        Some(_) => return Err("the direction is asc or desc".to_owned()),
    };
    Ok(OrderKey { field: field.to_owned(), descending })
}
