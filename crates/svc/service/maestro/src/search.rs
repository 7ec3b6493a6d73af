//! Searches and orders of clients, as conditions and orders on documents.
//!
//! There are two grammars, chosen by the text: with `->>` or `@>` the one that reaches into JSON (`jsonb`), otherwise the older
//! one (`tsl`). Both name only columns of a list, and values stay values: no part of a search becomes part of a statement.

mod columns;
mod jsonb;
mod order;
mod tsl;

use aro_store::{Condition, Expr, Literal, Relation};

pub use columns::Table;
pub use order::order;

use crate::fault::{Code, Fault};

/// Parses a search; `None` for an empty one.
pub fn condition(table: Table, text: &str) -> Result<Option<Condition>, Fault> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let looks_into_json = text.contains("->>") || text.contains("@>");
    let read = if looks_into_json { jsonb::read(table, text) } else { tsl::read(table, text) };
    let checked = read.and_then(|expr| expr.check().map_err(|error| error.to_string()));
    checked.map(Some).map_err(|why| {
        let reason = if looks_into_json {
            format!("failed to parse the search query: {why}")
        } else {
            format!("Failed to parse search query: {text}: {why}")
        };
        Fault::new(Code::BadRequest, reason)
    })
}

/// The one consumer that a search is restricted to, if it is.
pub fn only_consumer(condition: &Condition) -> Option<&str> {
    fn of(expr: &Expr) -> Option<&str> {
        match expr {
            Expr::And(parts) => parts.iter().find_map(of),
            Expr::Compare(path, Relation::Eq, Literal::Text(name)) if path.names() == ["consumer_name"] => {
                Some(name)
            }
            _ => None,
        }
    }
    of(condition.expr())
}

/// What is left of a search for one consumer when only that consumer's bundles are looked at: `None` if nothing is. Bodies
/// need not be read for what the index knows.
pub fn beside_consumer(condition: &Condition, consumer: &str) -> Option<Condition> {
    let is_consumer = |expr: &Expr| {
        matches!(expr, Expr::Compare(path, Relation::Eq, Literal::Text(name))
            if path.names() == ["consumer_name"] && name == consumer)
    };
    match condition.expr() {
        expr if is_consumer(expr) => None,
        Expr::And(parts) => {
            let left: Vec<Expr> = parts.iter().filter(|part| !is_consumer(part)).cloned().collect();
            if left.is_empty() {
                return None;
            }
            Some(Expr::And(left).check().unwrap_or_else(|_| condition.clone()))
        }
        _ => Some(condition.clone()),
    }
}

/// The depth of parentheses.
const MAX_NESTING: usize = 16;

/// A disjunction of conjunctions: flat, so that a long search is not a deep one.
fn joined(mut any: Vec<Vec<Expr>>) -> Expr {
    let all = |mut parts: Vec<Expr>| match parts.len() {
        1 => parts.remove(0),
        _ => Expr::And(parts),
    };
    match any.len() {
        1 => all(any.remove(0)),
        _ => Expr::Or(any.into_iter().map(all).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aro_store::Path;
    use aro_store_conformance::holds_text;
    use proptest::prelude::*;

    fn row() -> String {
        serde_json::json!({
            "id": "123", "name": "123", "source": "mw-client-example", "consumer_name": "c1", "version": 12,
            "type": "Bundle", "created_at": "2026-01-02T03:04:05.000000Z", "updated_at": "2026-01-02T03:04:05.000000Z",
            "payload": {
                "source": "mw-client-example",
                "metadata": {"labels": {"app": "x", "env": "y", "api.openshift.com/id": "x", "it's": "q"}},
                "data": {"manifests": [{"metadata": {"labels": {"foo": "bar", "more": "m"}}}]},
            },
            "status": null,
        })
        .to_string()
    }

    fn finds(search: &str) -> bool {
        let condition = condition(Table::Bundles, search).unwrap_or_else(|fault| panic!("{search}: {fault}"));
        holds_text(&condition.expect("not empty"), &row())
    }

    #[test]
    fn searches_of_real_clients_find_what_they_look_for() {
        for (search, expected) in [
            ("source='mw-client-example' and consumer_name='c1'", true),
            ("source='mw-client-example' and consumer_name='c2'", false),
            ("source='mw-client-example' and (consumer_name='a' or consumer_name='c1')", true),
            ("source='mw-client-example' and (consumer_name='a' or consumer_name='b')", false),
            (
                "source='mw-client-example' and consumer_name='c1' and payload->'metadata'->'labels'@>'{\"app\":\"x\",\"env\":\"y\"}'",
                true,
            ),
            ("consumer_name='c1' and payload->'metadata'->'labels'@>'{\"app\":\"z\"}'", false),
            ("source='mw-client-example' and payload->'metadata'->'labels'->>'env'in('a','y')", true),
            ("payload->'metadata'->'labels'->>'env'in('a','b')", false),
            ("payload->'metadata'->'labels'->>'env' not in ('a','b')", true),
            ("payload->'metadata'->'labels'->>'none' not in ('a','b')", false),
            ("payload->'metadata'->'labels'->>'env'<>'v'", true),
            ("payload->'metadata'->'labels'->>'env'<>null", true),
            ("payload->'metadata'->'labels'->>'none'<>null", false),
            ("payload->'metadata'->'labels'->>'api.openshift.com/id'='x'", true),
            ("payload->'metadata'->'labels'->>'api.openshift.com/id'='y'", false),
            ("payload->'metadata'->'labels'->>'it\\'s'='q'", true),
            ("payload -> 'data' -> 'manifests' @> '[{\"metadata\":{\"labels\":{\"foo\":\"bar\"}}}]'", true),
            ("payload -> 'data' -> 'manifests' @> '[{\"metadata\":{\"labels\":{\"foo\":\"baz\"}}}]'", false),
            ("payload->'metadata'->'labels'->>'env' like 'y%' AND version >= 12", true),
            ("(id='123' or id='9') and payload->'metadata'->'labels'->>'env' ILIKE 'Y'", true),
            ("id in ('123')", true),
            ("id not in ('123','4')", false),
            ("ID = '123' AND Version > 3 and version < 100", true),
            ("version between 12 and 13", true),
            ("version = '12'", true),
            ("version <> 12", false),
            ("not (version != 12)", true),
            ("deleted_at is null", true),
            ("deleted_at is not null", false),
            ("not deleted_at = '2026-01-01'", false),
            ("created_at > '2026-01-02'", true),
            ("created_at >= '2026-01-02T05:04:05+02:00'", true),
            ("created_at < '2026-01-02 03:04:05'", false),
            ("name like '1_3' and name not like '2%' and name ilike '%3'", true),
            ("resources.id = '123' and \"type\" = 'Bundle' and [name] = '123' and `source` <> ''", true),
            ("source = 'it''s'", false),
            ("id is '123' and id is not '4'", true),
            ("id = 123", true),
        ] {
            assert_eq!(finds(search), expected, "{search}");
        }
    }

    #[test]
    fn what_is_no_search_is_refused_in_the_words_that_clients_know() {
        for search in [
            "garbage",
            "id =",
            "id = '1",
            "id = '1' and",
            "(id = '1'",
            "id = '1')",
            "id in ()",
            "id = '1' id = '2'",
            "id ~= '1'",
            "nothing = '1'",
            "payload = 'x'",
            "other.id = '1'",
            "version = 'x'",
            "version like '1%'",
            "created_at > 'soon'",
            "id + 1 = 2",
            "delivery = 'x'",
            "id = '1'; drop table x",
            &format!("{}id = '1'{}", "(".repeat(100), ")".repeat(100)),
            &"id = '1' or ".repeat(2000),
        ] {
            let fault = condition(Table::Bundles, search).unwrap_err();
            assert_eq!(fault.code, Code::BadRequest);
            assert!(
                fault.reason.starts_with(&format!("Failed to parse search query: {search}")),
                "{}",
                fault.reason
            );
        }
        for search in [
            "payload@>'{}'",
            "payload->'a'->>",
            "payload->'a'->>'b'",
            "payload->'a'->>'b'='c' and",
            "payload->a->>'b'='c'",
            "payload->'a'->>'b'>'c'",
            "payload->'a'@>'{'",
            "payload->'a'->>'b' not like 'c'",
            "delivery->'a'->>'b'='c'",
            "name->'a'->>'b'='c'",
            "(payload->'a'->>'b'='c'",
            "payload->'a'->>'b'='c')",
            &["payload->'a'->>'b'='c'"; 12].join(" and "),
        ] {
            let fault = condition(Table::Bundles, search).unwrap_err();
            assert_eq!(fault.code, Code::BadRequest);
            assert!(fault.reason.starts_with("failed to parse the search query: "), "{}", fault.reason);
        }
        assert!(condition(Table::Consumers, "source = 'x'").is_err(), "a column of the other table");
        assert!(condition(Table::Bundles, " ").unwrap().is_none());
    }

    #[test]
    fn a_search_for_one_consumer_is_known_as_such() {
        let only = |search: &str| {
            let condition = condition(Table::Bundles, search).unwrap().unwrap();
            only_consumer(&condition).map(str::to_owned)
        };
        assert_eq!(only("source='s' and consumer_name='c'").as_deref(), Some("c"));
        assert_eq!(only("consumer_name='c' and payload->'a'->>'b'='c'").as_deref(), Some("c"));
        assert_eq!(only("source='s' and (consumer_name='a' or consumer_name='b')"), None);
        assert_eq!(only("not consumer_name='a'"), None);
    }

    #[test]
    fn a_search_for_one_consumer_leaves_only_the_rest_to_look_for() {
        let beside = |search: &str| {
            let condition = condition(Table::Bundles, search).unwrap().unwrap();
            beside_consumer(&condition, "c")
        };
        assert!(beside("consumer_name='c'").is_none());
        assert!(beside("consumer_name='c' and consumer_name='c'").is_none());
        let source = condition(Table::Bundles, "source='s' and source='s'").unwrap().unwrap();
        let Expr::And(parts) = source.expr() else { panic!("two parts") };
        assert_eq!(
            *beside("source='s' and consumer_name='c'").unwrap().expr(),
            Expr::And(vec![parts[0].clone()])
        );
        for kept in ["consumer_name='d'", "not consumer_name='c'", "consumer_name='c' or source='s'"] {
            assert_eq!(beside(kept), condition(Table::Bundles, kept).unwrap(), "{kept}");
        }
    }

    /// The top-level members that an expression uses.
    fn columns_of(expr: &Expr, found: &mut Vec<String>) {
        let mut add = |path: &Path| found.push(path.names()[0].clone());
        match expr {
            Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(|part| columns_of(part, found)),
            Expr::Not(part) => columns_of(part, found),
            Expr::Compare(path, ..)
            | Expr::Like { path, .. }
            | Expr::In(path, _)
            | Expr::Between(path, ..)
            | Expr::IsNull(path)
            | Expr::Contains(path, _) => add(path),
        }
    }

    const KNOWN: [&str; 11] = [
        "id",
        "name",
        "source",
        "consumer_name",
        "version",
        "type",
        "created_at",
        "updated_at",
        "deleted_at",
        "payload",
        "status",
    ];

    proptest! {
        #[test]
        fn no_text_is_a_panic_or_reaches_another_column(words in prop::collection::vec(prop::sample::select(vec![
            "id", "delivery", "payload", "status", "version", "'x'", "'{\"a\":1}'", "5", "-1.5", "=", "<>", "<", "!=", "->",
            "->>", "@>", "(", ")", ",", "and", "OR", "not", "in", "like", "ilike", "between", "is", "null", "'", "\\",
            "\"id\"", "[name]", "`", ".", "resources.", "+", "ü", "created_at", "'2026-01-01'",
        ]), 0..14), glue in prop::sample::select(vec!["", " "])) {
            let text = words.join(glue);
            if let Ok(Some(condition)) = condition(Table::Bundles, &text) {
                let mut found = Vec::new();
                columns_of(condition.expr(), &mut found);
                prop_assert!(found.iter().all(|column| KNOWN.contains(&column.as_str())), "{}: {:?}", text, found);
            }
        }

        #[test]
        fn no_characters_are_a_panic(text in "\\PC{0,60}", json in any::<bool>()) {
            let text = if json { format!("{text}->>'a'='b'") } else { text };
            let _ = condition(Table::Bundles, &text);
            let _ = order(Table::Bundles, &text);
        }
    }
}
