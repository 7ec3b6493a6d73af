//! Continuation tokens: a position in the order of results, bound to the query it came from.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::fold;
use crate::{Expr, Filter, Literal, PageToken, Path, Query, Relation, StoreError};

/// The place of the last document of a page. The next page starts behind it, whether or not it still exists, so
/// inserts and deletes elsewhere never repeat or skip a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Its folded resource id.
    pub resource_id: String,
    /// Distinguishes documents of equal resource id; the adapter's choice.
    pub tie: String,
}

/// Writes a token.
pub fn token_for(query: &Query, position: &Position) -> PageToken {
    let text = format!("{:016x}|{}|{}", seal(query, position), position.tie, position.resource_id);
    PageToken::new(URL_SAFE_NO_PAD.encode(text))
}

/// Reads a token back; refuses what was not handed out for this query.
pub fn position_of(query: &Query, token: &PageToken) -> Result<Position, StoreError> {
    let bytes = URL_SAFE_NO_PAD.decode(token.as_str()).map_err(|_| StoreError::BadToken)?;
    let text = String::from_utf8(bytes).map_err(|_| StoreError::BadToken)?;
    let mut parts = text.splitn(3, '|');
    let (Some(sum), Some(tie), Some(resource_id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(StoreError::BadToken);
    };
    let position = Position { resource_id: resource_id.to_owned(), tie: tie.to_owned() };
    if sum == format!("{:016x}", seal(query, &position)) { Ok(position) } else { Err(StoreError::BadToken) }
}

/// A checksum over query and position. It guards against mistakes, not against forgery: a forged position shows
/// nothing that the query itself would not. Written out here because it must never change between releases.
fn seal(query: &Query, position: &Position) -> u64 {
    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    sum.add(query.container.name());
    sum.add_optional(query.partition.as_ref().map(|key| key.as_str()));
    sum.add_optional(query.resource_type.as_deref().map(fold).as_deref());
    sum.add_optional(query.id_prefix.as_deref().map(fold).as_deref());
    for filter in &query.filters {
        match filter {
            Filter::Eq(path, value) => sum.add("=").add(path).add(value),
            Filter::EqIgnoreCase(path, value) => sum.add("~").add(path).add(&value.to_ascii_lowercase()),
            Filter::In(path, values) => {
                values.iter().fold(sum.add("in").add(path), |sum, value| sum.add(value))
            }
            Filter::Absent(path) => sum.add("absent").add(path),
        };
    }
    if let Some(condition) = &query.condition {
        sum.add("where").add_expr(condition.expr());
    }
    sum.add(&position.tie).add(&position.resource_id).0
}

/// FNV-1a with lengths, so that ("ab", "c") and ("a", "bc") differ.
struct Sum(u64);

impl Sum {
    fn add(&mut self, text: &str) -> &mut Self {
        for byte in (text.len() as u64).to_le_bytes().into_iter().chain(text.bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    fn add_optional(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.add("some").add(text),
            None => self.add("none"),
        };
    }

    fn add_expr(&mut self, expr: &Expr) {
        match expr {
            Expr::And(parts) => self.add_parts("and", parts),
            Expr::Or(parts) => self.add_parts("or", parts),
            Expr::Not(part) => self.add("not").add_expr(part),
            Expr::Compare(path, relation, literal) => {
                let relation = match relation {
                    Relation::Eq => "=",
                    Relation::Ne => "<>",
                    Relation::Lt => "<",
                    Relation::Le => "<=",
                    Relation::Gt => ">",
                    Relation::Ge => ">=",
                };
                self.add(relation).add_path(path).add_literal(literal);
            }
            Expr::Like { path, pattern, ignore_case } => {
                self.add(if *ignore_case { "ilike" } else { "like" }).add_path(path).add(pattern);
            }
            Expr::In(path, literals) => {
                self.add("in").add_path(path).add_count(literals.len());
                for literal in literals {
                    self.add_literal(literal);
                }
            }
            Expr::Between(path, low, high) => {
                self.add("between").add_path(path).add_literal(low).add_literal(high);
            }
            Expr::IsNull(path) => {
                self.add("null").add_path(path);
            }
            Expr::Contains(path, value) => {
                self.add("contains").add_path(path).add(&value.to_string());
            }
        }
    }

    fn add_parts(&mut self, connective: &str, parts: &[Expr]) {
        self.add(connective).add_count(parts.len());
        for part in parts {
            self.add_expr(part);
        }
    }

    fn add_path(&mut self, path: &Path) -> &mut Self {
        path.names().iter().fold(self.add_count(path.names().len()), |sum, name| sum.add(name))
    }

    fn add_literal(&mut self, literal: &Literal) -> &mut Self {
        match literal {
            Literal::Text(text) => self.add("text").add(text),
            Literal::Number(number) => self.add("number").add(&number.to_string()),
            Literal::Bool(boolean) => self.add(if *boolean { "true" } else { "false" }),
            Literal::Null => self.add("null"),
        }
    }

    fn add_count(&mut self, count: usize) -> &mut Self {
        self.add(&count.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Container;

    const CONTAINER: Container = Container::new("things");

    #[test]
    fn a_token_leads_back_to_its_position_for_its_own_query_only() {
        let query = Query::all(CONTAINER).of_type("A/b");
        let position = Position { resource_id: "/x|y/ü".to_owned(), tie: "7".to_owned() };
        let token = token_for(&query, &position);
        assert_eq!(position_of(&query, &token).expect("its own"), position);
        assert!(position_of(&Query::all(CONTAINER).of_type("a/B"), &token).is_ok(), "types have no case");
        assert!(matches!(position_of(&Query::all(CONTAINER), &token), Err(StoreError::BadToken)));
        let searched = query.clone().matching(Expr::is(Path::member("name"), "x").check().expect("small"));
        assert!(position_of(&searched, &token_for(&searched, &position)).is_ok());
        assert!(matches!(position_of(&searched, &token), Err(StoreError::BadToken)), "another search");
        assert!(matches!(position_of(&query, &PageToken::new("?!")), Err(StoreError::BadToken)));
        let cut = PageToken::new(&token.as_str()[..token.as_str().len() - 2]);
        assert!(matches!(position_of(&query, &cut), Err(StoreError::BadToken)));
    }
}
