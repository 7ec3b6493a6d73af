use proptest::prelude::*;

use super::*;

fn shown(term: &Term) -> String {
    let all = |parts: &[Term], sign: &str| {
        let parts: Vec<String> = parts.iter().map(shown).collect();
        format!("({})", parts.join(sign))
    };
    let values = |values: &[Value]| values.iter().map(Value::as_str).collect::<Vec<_>>().join("|");
    match term {
        Term::And(parts) => all(parts, " & "),
        Term::Or(parts) => all(parts, " | "),
        Term::Not(part) => format!("!{}", shown(part)),
        Term::Compare(field, relation, value) => {
            format!("{} {relation:?} {}", field.dotted(), value.as_str())
        }
        Term::Like { field, pattern, ignore_case } => {
            format!("{} like{} {}", field.dotted(), if *ignore_case { "-i" } else { "" }, pattern.as_str())
        }
        Term::In(field, list) => format!("{} in {}", field.dotted(), values(list)),
        Term::Between(field, low, high) => format!("{} {}..{}", field.dotted(), low.as_str(), high.as_str()),
        Term::IsNull(field) => format!("{} null", field.dotted()),
    }
}

#[test]
fn searches_of_real_clients_are_read() {
    for (text, expected) in [
        (
            "azure.subscription_id = 'S' and azure.resource_group_name='g' and azure.resource_name = 'it''s'",
            "(azure.subscription_id Eq S & azure.resource_group_name Eq g & azure.resource_name Eq it's)",
        ),
        ("enabled = 't' or default = true", "(enabled Eq t | default Eq true)"),
        ("a = 1 or b = 2 and not c = 3", "(a Eq 1 | (b Eq 2 & !c Eq 3))"),
        ("(a = 1 or b = 2) and c <> -3.5e+2", "((a Eq 1 | b Eq 2) & c Ne -3.5e+2)"),
        ("properties.a-b NOT IN ('x', 5)", "!properties.a-b in x|5"),
        ("name not ilike '%A_' AND id LIKE 'x%'", "(!name like-i %A_ & id like x%)"),
        ("x is not null and y is null", "(!x null & y null)"),
        ("x is '5'", "x Eq 5"),
        ("r between 1 and 3 and s >= 2", "(r 1..3 & s Ge 2)"),
        ("\"order\" = 'x' and [in] = 'y' and `is` != 'z'", "(order Eq x & in Eq y & is Ne z)"),
    ] {
        assert_eq!(shown(&parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))), expected, "{text}");
    }
}

#[test]
fn what_is_no_search_is_refused() {
    let deep = format!("{}id = '1'{}", "(".repeat(100), ")".repeat(100));
    let nots = format!("{} id = '1'", "not ".repeat(100));
    for text in [
        "",
        "garbage",
        "id =",
        "id = '1",
        "id = '1' and",
        "(id = '1'",
        "id = '1')",
        "id in ()",
        "id in '1'",
        "id = '1' id = '2'",
        "id ~= '1'",
        "id + 1 = 2",
        "id not = '1'",
        "id = -'1'",
        "id = -+1",
        ". = 1",
        "a. = 1",
        "id between 1",
        "id = '1'; drop table x",
        "'x' = 'x'",
        &deep,
        &nots,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn an_order_has_fields_and_directions() {
    let key = |field: &str, descending| OrderKey { field: field.to_owned(), descending };
    assert_eq!(
        order("creation_timestamp desc, azure.x ASC,name").unwrap(),
        [key("creation_timestamp", true), key("azure.x", false), key("name", false)]
    );
    assert!(order(" ").unwrap().is_empty());
    for bad in ["id up", "id,,name", "a b c", &"a,".repeat(9)] {
        assert!(order(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_characters_are_a_panic(text in "\\PC{0,80}") {
        let _ = parse(&text);
        let _ = order(&text);
    }

    #[test]
    fn no_words_are_a_panic(words in prop::collection::vec(prop::sample::select(vec![
        "id", "a.b", "'x'", "5", "-1.5", "=", "<>", "<", "(", ")", ",", "and", "OR", "not", "in", "like", "between", "is",
        "null", "'", "\"id\"", "[name]", "`", ".", "+", "ü", "true",
    ]), 0..16)) {
        let _ = parse(&words.join(" "));
    }
}
