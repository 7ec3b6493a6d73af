//! A condition as SQL on `b.j`, the body as `jsonb`. Every name and value is bound.
//!
//! SQL's own null does the work of "unknown": a member that is absent or of another sort becomes null, and everything
//! computed from it follows.

use aro_store::adapter::{ESCAPE, like_pattern, marked_by, needles};
use aro_store::{Condition, Expr, Literal, Order, Path, Relation};

use crate::read::Statement;

/// Adds the SQL of an expression to a statement.
pub(crate) fn expression(statement: &mut Statement, expr: &Expr) {
    match expr {
        Expr::And(parts) => joined(statement, parts, " AND ", "true"),
        Expr::Or(parts) => joined(statement, parts, " OR ", "false"),
        Expr::Not(part) => {
            statement.add("(NOT ");
            expression(statement, part);
            statement.add(")");
        }
        Expr::Compare(path, relation, literal) => compare(statement, path, relation_of(*relation), literal),
        Expr::Like { path, pattern, ignore_case } => {
            let text = text(statement, path);
            let pattern = statement.bind(like_pattern(pattern));
            let like = if *ignore_case { "ILIKE" } else { "LIKE" };
            statement.add(&format!("({text} {like} {pattern}::text)"));
        }
        Expr::In(path, literals) => {
            statement.add("(false");
            for literal in literals {
                statement.add(" OR ");
                compare(statement, path, "=", literal);
            }
            statement.add(")");
        }
        Expr::Between(path, low, high) => {
            statement.add("(");
            compare(statement, path, ">=", low);
            statement.add(" AND ");
            compare(statement, path, "<=", high);
            statement.add(")");
        }
        Expr::IsNull(path) => {
            let member = member(statement, path);
            statement.add(&format!("(coalesce(jsonb_typeof({member}), 'null') = 'null')"));
        }
        Expr::Contains(path, value) => {
            let member = member(statement, path);
            let value = statement.bind(value.to_string());
            statement.add(&format!("({member} @> {value}::text::jsonb)"));
        }
    }
}

/// What can be decided without reading the body as a value: by the digest in the row, then by the body's text. The digests
/// of bodies that are alike fail alike: some words pass in many of them at once, and to look for a text costs less than
/// to parse. One `CASE`, since the planner would put the text first: it does not count what fetching it costs.
pub(crate) fn ruled_in(statement: &mut Statement, condition: &Condition) {
    let places = marked_by(condition);
    let needles: Vec<String> = needles(condition).into_iter().map(str::to_owned).collect();
    if places.is_empty() && needles.is_empty() {
        return;
    }
    let in_text = in_text(statement, needles);
    statement.add(&format!(" AND CASE WHEN d.marks IS NULL THEN {in_text} ELSE true"));
    for place in places {
        statement.add(&format!(" AND get_bit(d.marks, {place} & (octet_length(d.marks) * 8 - 1)) = 1"));
    }
    statement.add(&format!(" AND {in_text} END"));
}

/// Whether all needles are in the body's text, which is fetched once: hence the copy, and `OFFSET 0`.
fn in_text(statement: &mut Statement, needles: Vec<String>) -> String {
    let found = |needle| {
        let needle = statement.bind(needle);
        format!("(strpos(n.t, {needle}::text) > 0 OR strpos(n.t, '{ESCAPE}') > 0)")
    };
    let found: Vec<String> = needles.into_iter().map(found).collect();
    if found.is_empty() {
        return "true".to_owned();
    }
    format!("(SELECT {} FROM (SELECT d.body || '' AS t OFFSET 0) n)", found.join(" AND "))
}

/// The keys of an `ORDER BY`, each followed by a comma.
pub(crate) fn sort_keys(statement: &mut Statement, orders: &[Order]) {
    for order in orders {
        let direction = if order.descending { "DESC NULLS FIRST" } else { "ASC NULLS LAST" };
        let number = number(statement, &order.path);
        let words = of_kind(statement, &order.path, "'string', 'boolean'");
        statement.add(&format!("{number} {direction}, {words} {direction}, "));
    }
}

fn joined(statement: &mut Statement, parts: &[Expr], connective: &str, neutral: &str) {
    statement.add("(");
    statement.add(neutral);
    for part in parts {
        statement.add(connective);
        expression(statement, part);
    }
    statement.add(")");
}

fn relation_of(relation: Relation) -> &'static str {
    match relation {
        Relation::Eq => "=",
        Relation::Ne => "<>",
        Relation::Lt => "<",
        Relation::Le => "<=",
        Relation::Gt => ">",
        Relation::Ge => ">=",
    }
}

fn compare(statement: &mut Statement, path: &Path, relation: &str, literal: &Literal) {
    let sql = match literal {
        Literal::Text(value) => {
            let text = text(statement, path);
            let value = statement.bind(value.clone());
            format!("({text} {relation} {value}::text)")
        }
        Literal::Number(value) => {
            let number = number(statement, path);
            // As text: a binary number would be rounded to fifteen digits on its way to a decimal one.
            let value = statement.bind(value.to_string());
            format!("({number} {relation} {value}::text::numeric)")
        }
        Literal::Bool(value) => {
            let member = member(statement, path);
            let value = statement.bind(*value);
            format!(
                "(CASE jsonb_typeof({member}) WHEN 'boolean' THEN ({member})::boolean END {relation} {value}::bool)"
            )
        }
        Literal::Null => "(null::boolean)".to_owned(),
    };
    statement.add(&sql);
}

/// The member as `jsonb`. Unlike `#>` this operator never takes a name for a place in a list.
fn member(statement: &mut Statement, path: &Path) -> String {
    path.names().iter().fold("b.j".to_owned(), |member, name| {
        let name = statement.bind(name.clone());
        format!("{member} -> {name}::text")
    })
}

/// What a member compares by as text.
fn text(statement: &mut Statement, path: &Path) -> String {
    of_kind(statement, path, "'string', 'number', 'boolean'")
}

fn number(statement: &mut Statement, path: &Path) -> String {
    let member = member(statement, path);
    format!("CASE jsonb_typeof({member}) WHEN 'number' THEN ({member})::numeric END")
}

/// The text of a member if it is of one of these kinds. `#>> '{}'` is the text of a value itself. Bytes decide the order.
fn of_kind(statement: &mut Statement, path: &Path, kinds: &str) -> String {
    let member = member(statement, path);
    format!("(CASE WHEN jsonb_typeof({member}) IN ({kinds}) THEN ({member}) #>> '{{}}' END) COLLATE \"C\"")
}
