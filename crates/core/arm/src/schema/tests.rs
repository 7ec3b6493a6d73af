//! The engine on a table of its own.

use serde_json::{Map, Value, json};

use super::problems::Problems;
use super::*;
use crate::FieldPath;
use Edition::{First, Fourth, Second, Third};

/// The versions of a provider that exists here only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    First,
    Second,
    Third,
    Fourth,
}

impl Version for Edition {
    const ALL: &'static [Self] = &[First, Second, Third, Fourth];
    const OLDEST: Self = First;
}

static BODY: Body<Edition> = Body {
    members: &[
        Member::int("count").range(1, 9).default_int(3),
        Member::text("free"),
        Member::object("inner", INNER),
        Member::text("kept").create_only().keep(),
        Member::word("late", &["A", "B"]).since(Fourth).required().initially("B"),
        Member::object("later", LATER).since(Third),
        Member::list("list", &Kind::Object(&[Member::text("key").required()], Presence::Optional))
            .items(0, 2),
        Member::map("map", &Kind::Text { min: 0, max: Some(3), pattern: None }),
        Member::optional("maybe", &[Member::bool("yes").default_bool(true)]),
        Member::text("once").create_only().required_from(Second),
        Member::text("opened").updatable_from(Second),
        Member::shown("shown", "string"),
        Member::object("whole", WHOLE).create_only().atomic(),
    ],
    moves: &[Move { until: First, parent: &[], old: &["inner", "moved"], new: &["free"] }],
};
static INNER: &[Member<Edition>] = &[Member::text("must").required()];
static LATER: &[Member<Edition>] = &[Member::word("mode", &["X", "Y"]).since(Third).default_text("X")];
static WHOLE: &[Member<Edition>] = &[Member::int("a").default_int(0), Member::int("b").default_int(0)];

fn read_new(version: Edition, given: Value) -> (Value, Vec<String>) {
    read_over(version, given, None)
}

fn read_over(version: Edition, given: Value, stored: Option<Value>) -> (Value, Vec<String>) {
    let stored = stored.map(|stored| stored.as_object().cloned().unwrap());
    match read::read(&BODY, version, &given, stored.as_ref()) {
        Ok((canonical, problems)) => {
            let problems = problems.finish(&BODY, version).err().unwrap_or_default();
            (Value::Object(canonical), problems.iter().map(ToString::to_string).collect())
        }
        Err(problems) => (Value::Null, problems.iter().map(ToString::to_string).collect()),
    }
}

fn good() -> Value {
    json!({"inner": {"must": "m"}, "once": "o", "late": "A"})
}

#[test]
fn an_omitted_member_has_its_default_and_an_always_present_object_is_made() {
    let (canonical, problems) = read_new(Fourth, good());
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        canonical,
        json!({"count": 3, "inner": {"must": "m"}, "late": "A", "later": {"mode": "X"}, "once": "o",
               "whole": {"a": 0, "b": 0}})
    );
}

#[test]
fn what_a_version_does_not_know_starts_with_its_initial_value_and_is_never_missed() {
    let (canonical, problems) = read_new(First, json!({"inner": {"must": "m"}, "late": 7, "later": 8}));
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(canonical["late"], "B");
    assert_eq!(canonical["later"], json!({"mode": "X"}));
    let stored = json!({"inner": {"must": "m"}, "late": "A", "later": {"mode": "Y"}, "once": "o"});
    let (canonical, _) = read_over(First, json!({"inner": {"must": "n"}, "once": "o"}), Some(stored));
    assert_eq!((&canonical["late"], &canonical["later"]), (&json!("A"), &json!({"mode": "Y"})));
}

#[test]
fn required_members_are_missed_unless_the_stored_object_lacks_them_too() {
    let (_, problems) = read_new(Fourth, json!({}));
    assert_eq!(problems, ["inner.must: Required value", "late: Required value", "once: Required value"]);
    let (_, problems) = read_new(First, json!({"inner": {"must": "m"}}));
    assert_eq!(problems, Vec::<String>::new());
    let without = json!({"inner": {"must": "m"}, "late": "A"});
    let (_, problems) = read_over(Fourth, without.clone(), Some(without.clone()));
    assert_eq!(problems, Vec::<String>::new());
    let (_, problems) = read_over(Fourth, without, Some(good()));
    assert_eq!(problems, ["once: Required value"]);
}

#[test]
fn wrong_values_are_reported_and_repaired() {
    let mut body = good();
    body["count"] = json!(10);
    body["late"] = json!("C");
    body["list"] = json!([{"key": "a"}, {}, {"key": "c"}]);
    body["map"] = json!({"a": "long", "b": null, "c": "ok"});
    let (canonical, problems) = read_new(Fourth, body);
    assert_eq!(
        problems,
        [
            "count: Invalid value: 10: must be less than or equal to 9",
            "late: Unsupported value: \"C\": supported values: \"A\", \"B\"",
            "list: Too many: 3: must have at most 2 items",
            "list[1].key: Required value",
            "map[a]: Too long: may not be more than 3 bytes",
        ]
    );
    assert_eq!(canonical["late"], "B", "the usual value stands in");
    assert_eq!(canonical["map"], json!({"a": "long", "c": "ok"}));
}

#[test]
fn kept_members_survive_a_replace_that_omits_them_and_others_do_not() {
    let mut stored = good();
    stored["kept"] = json!("k");
    stored["free"] = json!("f");
    stored["maybe"] = json!({"yes": false});
    let (canonical, problems) = read_over(Fourth, good(), Some(stored));
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(canonical["kept"], "k");
    assert_eq!((canonical.get("free"), canonical.get("maybe")), (None, None));
}

#[test]
fn a_moved_member_is_read_from_its_old_place_and_reported_there() {
    let mut body = good();
    body["inner"]["moved"] = json!("x");
    let (canonical, _) = read_new(First, body.clone());
    assert_eq!(canonical["free"], "x");
    let (canonical, _) = read_new(Second, body.clone());
    assert_eq!(canonical.get("free"), None);
    body["inner"]["moved"] = json!(1);
    let (_, problems) = read_new(First, body);
    let text = "The request content was invalid and could not be deserialized: inner.moved: expected a string, got a number";
    assert_eq!(problems, [format!("inner.moved: {text}")]);
}

#[test]
fn create_only_members_are_compared_per_version_and_atomic_ones_as_a_whole() {
    let changed = |version, old: Value, new: Value| {
        let map = |value: Value| -> Map<String, Value> { value.as_object().cloned().unwrap() };
        let mut problems = Problems::default();
        compare::immutable(BODY.members, version, &map(old), &map(new), &FieldPath::root(), &mut problems);
        let problems = problems.finish(&BODY, version).err().unwrap_or_default();
        problems.iter().map(|problem| problem.path.as_str().to_owned()).collect::<Vec<_>>()
    };
    let old = json!({"once": "a", "opened": "a", "free": "a", "whole": {"a": 1, "b": 2}});
    let new = json!({"once": "b", "opened": "b", "free": "b", "whole": {"a": 1, "b": 3}});
    assert_eq!(changed(First, old.clone(), new.clone()), ["once", "opened", "whole"]);
    assert_eq!(changed(Second, old.clone(), new), ["once", "whole"]);
    assert_eq!(changed(Fourth, old.clone(), old), Vec::<String>::new());
    assert_eq!(changed(Fourth, json!({}), json!({"once": "set later"})), ["once"]);
}

#[test]
fn an_answer_shows_what_the_version_knows_where_the_version_has_it() {
    let projection = project::Projection::new(&BODY);
    let full = json!({"free": "f", "inner": {"must": "m"}, "late": "A", "later": {"mode": "Y"}});
    let shown = |version| {
        let mut answer = full.clone();
        projection.apply(version, &mut answer);
        answer
    };
    assert_eq!(shown(Fourth), full);
    assert_eq!(shown(Third), json!({"free": "f", "inner": {"must": "m"}, "later": {"mode": "Y"}}));
    assert_eq!(shown(First), json!({"inner": {"must": "m", "moved": "f"}}));
}
