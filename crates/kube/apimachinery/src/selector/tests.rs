use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn selects(selector: &LabelSelector, labels: &[(&str, &str)]) -> bool {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    selector.matches(|key| labels.get(key).map(String::as_str))
}

#[test]
fn label_queries_select_what_they_say() {
    let labels = &[("app", "web"), ("tier", "front"), ("n", "5")];
    for (query, selected) in [
        ("", true),
        ("app=web", true),
        ("app==web,tier=front", true),
        ("app!=web", false),
        ("none!=x", true),
        ("app in (db, web)", true),
        ("app in (db)", false),
        ("none in (x)", false),
        ("app notin (db)", true),
        ("none notin (db)", true),
        ("app", true),
        ("!app", false),
        ("!none", true),
        ("none", false),
        ("n>4", true),
        ("n<5", false),
        ("app>1", false),
        ("app=", false),
        ("none in ()", false),
        ("in=in", false),
        ("in in (in),x", false),
    ] {
        let selector = LabelSelector::parse(query).unwrap();
        assert_eq!(selects(&selector, labels), selected, "{query}");
    }
}

#[test]
fn label_queries_are_shown_in_the_order_of_keys() {
    for (query, shown) in [
        ("b=2,a=1", "a=1,b=2"),
        ("x in (c,a,,b)", "x in (,a,b,c)"),
        ("x notin (,)", "x notin ()"),
        ("!y,x", "x,!y"),
        ("a == b , c != d,e>1,f<2", "a==b,c!=d,e>1,f<2"),
    ] {
        assert_eq!(LabelSelector::parse(query).unwrap().to_string(), shown, "{query}");
    }
}

#[test]
fn malformed_label_queries_are_refused_in_upstreams_words() {
    for (query, error) in [
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a ! b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value \
             must be an integer",
        ),
    ] {
        assert_eq!(LabelSelector::parse(query).unwrap_err(), error, "{query}");
    }
    let error = LabelSelector::parse("a$b=c").unwrap_err();
    assert!(
        error.starts_with("unable to parse requirement: <nil>: Invalid value: \"a$b\": name part must"),
        "{error}"
    );
    let error = LabelSelector::parse("a=-").unwrap_err();
    assert!(
        error.starts_with("unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid"),
        "{error}"
    );
}

#[test]
fn selector_objects_mean_the_same_as_queries() {
    let selector = LabelSelector::from_object(&json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    }))
    .unwrap();
    assert_eq!(selector.to_string(), "app=web,!old,tier in (back,front)");
    assert!(selects(&selector, &[("app", "web"), ("tier", "back")]));
    assert!(LabelSelector::from_object(&json!(null)).unwrap().is_empty());
    let errors = LabelSelector::from_object(&json!({"matchExpressions": [
        {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]}, {"key": "a", "operator": "Is"},
    ]}))
    .unwrap_err();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            "matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            "matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector operator",
        ]
    );
}

#[test]
fn field_queries_select_what_they_say() {
    let get = |field: &str| match field {
        "metadata.name" => Some("web"),
        "x" => Some("a,b=c\\"),
        _ => None,
    };
    for (query, selected) in [
        ("", true),
        ("metadata.name=web", true),
        ("metadata.name==web,other!=x", true),
        ("metadata.name!=web", false),
        ("other=", true),
        ("other=x", false),
        (r"x=a\,b\=c\\", true),
        (",,metadata.name=web,", true),
        ("=", true),
    ] {
        assert_eq!(FieldSelector::parse(query).unwrap().matches(get), selected, "{query}");
    }
    let selector = FieldSelector::parse("b!=2,a=1").unwrap();
    assert_eq!(selector.requirements().collect::<Vec<_>>(), [("a", true, "1"), ("b", false, "2")]);
    assert_eq!(FieldSelector::parse("a==1,a=2").unwrap(), FieldSelector::parse("a=1,a==2").unwrap());
}

#[test]
fn malformed_field_queries_are_refused_in_upstreams_words() {
    for (query, error) in [
        ("foo", "invalid selector: 'foo'; can't understand 'foo'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
    ] {
        assert_eq!(FieldSelector::parse(query).unwrap_err(), error, "{query}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "[a-z()!=<>, \\\\ä\\x00]{0,24}", any in ".{0,40}") {
        for text in [text, any] {
            if let Ok(selector) = LabelSelector::parse(&text) {
                let shown = selector.to_string();
                prop_assert_eq!(LabelSelector::parse(&shown).map(|again| again.to_string()), Ok(shown));
            }
            if let Ok(selector) = FieldSelector::parse(&text) {
                prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
            }
        }
    }
}
