//! Conditions, slices and counts: every adapter agrees with the reference, on examples and on random trees.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::{Fixture, THINGS, doc_with, ids, part, write};
use aro_store::adapter::{compare_keys, holds, sort_keys};
use aro_store::{
    Condition, Expr, Literal, NewDocument, Op, Order, Path, Query, Raw, Relation, SharedStore, Slice,
};

async fn put(store: &SharedStore, id: &str, body: &Value) {
    write(store, "p", Op::Create(doc_with(id, body))).await.unwrap();
}

fn path(names: &[&str]) -> Path {
    Path::new(names.iter().copied()).unwrap()
}

async fn found(store: &SharedStore, expr: Expr) -> Vec<String> {
    let query = Query::partition(THINGS, part("p")).matching(expr.check().unwrap());
    let found = ids(store, &query, 3).await;
    assert_eq!(store.count(&query).await.unwrap(), found.len() as u64);
    found
}

async fn slice(store: &SharedStore, query: &Query, slice: Slice) -> Vec<String> {
    let documents = store.slice(query, &slice).await.unwrap();
    documents.iter().map(|document| document.key.id.as_str().to_owned()).collect()
}

/// Names and values of a condition are data, whatever they look like.
pub async fn names_and_values_of_a_condition_are_never_part_of_a_statement<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let nasty = ["'", "\"", "a'; DROP TABLE document; --", "$1", "?", "{a,b}", "\\", "%", "a.b", "->>", "ü"];
    for (number, name) in nasty.iter().enumerate() {
        put(&store, &format!("d{number:02}"), &json!({ *name: { *name: *name } })).await;
    }
    for (number, name) in nasty.iter().enumerate() {
        let expected = [format!("d{number:02}")];
        let both = path(&[name, name]);
        assert_eq!(found(&store, Expr::is(both.clone(), *name)).await, expected, "{name}");
        let contains = Expr::Contains(path(&[name]), json!({ *name: *name }));
        assert_eq!(found(&store, contains).await, expected, "{name}");
        let order = vec![Order { path: both, descending: false }];
        let query = Query::partition(THINGS, part("p"));
        let sorted = slice(&store, &query, Slice { order, skip: 0, size: 1, ..Slice::default() }).await;
        assert_eq!(sorted, expected, "{name}: what has the member comes first");
    }
}

/// One document that PostgreSQL's `jsonb` cannot hold must not spoil searches for all.
pub async fn a_body_with_unpaired_escapes_is_left_out_and_fails_no_search<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    put(&store, "good", &json!({"name": "x"})).await;
    for (id, body) in [("nul", r#"{"name":"x","a":"\u0000"}"#), ("half", r#"{"name":"x","a":"\ud800"}"#)] {
        let body = Raw::parse(body.to_owned()).unwrap();
        write(&store, "p", Op::Create(NewDocument { body, ..doc_with(id, &json!({})) })).await.unwrap();
    }
    assert_eq!(found(&store, Expr::is(path(&["name"]), "x")).await, ["good"]);
    assert_eq!(found(&store, Expr::IsNull(path(&["none"]))).await, ["good"]);
    let all = Query::partition(THINGS, part("p"));
    assert_eq!(store.count(&all).await.unwrap(), 3, "without a condition they count");
    let order = vec![Order::ascending(path(&["name"]))];
    assert_eq!(
        slice(&store, &all, Slice { order, skip: 0, size: 9, ..Slice::default() }).await,
        ["good", "half", "nul"]
    );
}

/// A walk over numbered pages shows every document once.
pub async fn slices_together_are_the_whole_result_in_order<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for number in 0..10_u32 {
        let body = json!({"even": number % 2 == 0, "n": 9 - number, "group": format!("g{}", number % 3)});
        put(&store, &format!("d{number}"), &body).await;
    }
    let query = Query::all(THINGS).of_type("test/things").under("/things/");
    let order = vec![Order { path: path(&["group"]), descending: true }, Order::ascending(path(&["n"]))];
    let mut walked = Vec::new();
    for page in 0..4 {
        walked.extend(
            slice(
                &store,
                &query,
                Slice { order: order.clone(), skip: page * 3, size: 3, ..Slice::default() },
            )
            .await,
        );
    }
    assert_eq!(walked, ["d8", "d5", "d2", "d7", "d4", "d1", "d9", "d6", "d3", "d0"]);
    assert_eq!(
        slice(&store, &query, Slice { order: vec![], skip: 7, size: 9, ..Slice::default() }).await,
        ["d7", "d8", "d9"]
    );
    assert_eq!(
        slice(&store, &query, Slice { order, skip: 100, size: 9, ..Slice::default() }).await,
        Vec::<String>::new()
    );
    assert_eq!(slice(&store, &query, Slice::default()).await, Vec::<String>::new());
    let even = Expr::Compare(path(&["even"]), Relation::Eq, Literal::Bool(true)).check().unwrap();
    assert_eq!(store.count(&query.clone().matching(even)).await.unwrap(), 5);
    assert_eq!(store.count(&query).await.unwrap(), 10);
    assert_eq!(store.count(&query.of_type("unknown")).await.unwrap(), 0);
}

/// Age is that of the name: a change does not make anything younger.
pub async fn what_is_new_comes_last_when_asked_for<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for id in ["c", "a", "b"] {
        put(&store, id, &json!({"group": 1})).await;
    }
    let etag = super::get(&store, "p", "c").await.unwrap().etag;
    write(&store, "p", Op::Replace(doc_with("c", &json!({"group": 2})), etag)).await.unwrap();
    let query = Query::all(THINGS).of_type("test/things");
    let by_age = Slice { oldest_first: true, size: 9, ..Slice::default() };
    assert_eq!(slice(&store, &query, by_age.clone()).await, ["c", "a", "b"]);
    assert_eq!(slice(&store, &query, Slice { skip: 1, size: 1, ..by_age.clone() }).await, ["a"]);
    let order = vec![Order::ascending(path(&["group"]))];
    assert_eq!(slice(&store, &query, Slice { order, ..by_age }).await, ["a", "b", "c"]);
}

/// Looking for a text is a short cut, never a meaning: characters can be written in several ways.
pub async fn a_text_is_found_however_it_is_written<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for (id, body) in [
        ("plain", r#"{"name":"zebra"}"#),
        ("escaped", r#"{"n\u0061me":"z\u0065bra"}"#),
        ("other", r#"{"name":"horse"}"#),
    ] {
        let body = Raw::parse(body.to_owned()).unwrap();
        write(&store, "p", Op::Create(NewDocument { body, ..doc_with(id, &json!({})) })).await.unwrap();
    }
    assert_eq!(found(&store, Expr::is(path(&["name"]), "zebra")).await, ["escaped", "plain"]);
    assert_eq!(found(&store, Expr::is(path(&["name"]), "zebra").negated()).await, ["other"]);
}

/// Random documents, random conditions, random orders: each adapter agrees with the reference.
pub async fn random_conditions_agree_with_the_reference<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let bodies = vec(members(), 40).new_tree(&mut runner).expect("bodies").current();
    let mut documents = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let id = format!("d{number:02}");
        put(&store, &id, body).await;
        documents.push((id, Raw::of(body).unwrap()));
    }
    let all = Query::partition(THINGS, part("p"));
    let mut hits = 0;
    for _ in 0..400 {
        let expr = expr().new_tree(&mut runner).expect("a condition").current();
        let condition: Condition = expr.check().unwrap();
        let order = vec(order(), 0..3).new_tree(&mut runner).expect("orders").current();
        let mut expected: Vec<_> = documents
            .iter()
            .filter(|(_, body)| holds(&condition, body))
            .map(|(id, body)| (sort_keys(&order, body), id.clone()))
            .collect();
        expected.sort_by(|left, right| compare_keys(&order, &left.0, &right.0));
        hits += expected.len();
        let expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
        let query = all.clone().matching(condition.clone());
        let found =
            slice(&store, &query, Slice { order: order.clone(), skip: 0, size: 99, ..Slice::default() })
                .await;
        assert_eq!(found, expected, "{condition:?} ordered by {order:?}");
        assert_eq!(store.count(&query).await.unwrap(), expected.len() as u64, "{condition:?}");
    }
    assert!(hits > 2000 && hits < 400 * 39, "the conditions distinguish documents: {hits}");
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "0", "x.y/z"]).prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["", "a", "A", "ab", "b", "1", "5", "true", "null", "it's", "Zebra", "zebra"])
            .prop_map(str::to_owned),
        1 => "[a-cA-C%_ü\\\\\"]{0,4}",
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => word().prop_map(Value::from),
        2 => (-3..12_i64).prop_map(Value::from),
        1 => prop::sample::select(vec![0.5, -1.25, 5.0, 100.0, 1e21, -0.0]).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((name(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn members() -> impl Strategy<Value = Value> {
    vec((name(), value()), 1..6).prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn some_path() -> impl Strategy<Value = Path> {
    vec(name(), 1..3).prop_map(|names| Path::new(names).unwrap())
}

fn order() -> impl Strategy<Value = Order> {
    (some_path(), any::<bool>()).prop_map(|(path, descending)| Order { path, descending })
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        5 => word().prop_map(Literal::Text),
        3 => prop_oneof![(-3..12_i32).prop_map(f64::from), Just(0.5), Just(1e21)].prop_map(Literal::Number),
        1 => any::<bool>().prop_map(Literal::Bool),
        1 => Just(Literal::Null),
    ]
}

fn relation() -> impl Strategy<Value = Relation> {
    use Relation::{Eq, Ge, Gt, Le, Lt, Ne};
    prop::sample::select(vec![Eq, Ne, Lt, Le, Gt, Ge])
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        4 => (some_path(), relation(), literal()).prop_map(|(path, relation, value)| Expr::Compare(path, relation, value)),
        2 => (some_path(), "[a-cA-C%_\\\\]{0,4}", any::<bool>())
            .prop_map(|(path, pattern, ignore_case)| Expr::Like { path, pattern, ignore_case }),
        2 => (some_path(), vec(literal(), 0..4)).prop_map(|(path, literals)| Expr::In(path, literals)),
        1 => (some_path(), literal(), literal()).prop_map(|(path, low, high)| Expr::Between(path, low, high)),
        2 => some_path().prop_map(Expr::IsNull),
        3 => (some_path(), value()).prop_map(|(path, value)| Expr::Contains(path, value)),
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Expr::And),
            vec(inner.clone(), 0..4).prop_map(Expr::Or),
            inner.prop_map(Expr::negated),
        ]
    })
}
