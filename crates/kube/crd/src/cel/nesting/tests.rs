use super::*;
use crate::expression::Expression;

/// Long chains of every kind that the grammar has.
fn chains(length: usize) -> Vec<(&'static str, String)> {
    let many = |text: &str| text.repeat(length);
    vec![
        ("sums", format!("1{}", many("+1"))),
        ("comparisons", format!("object{}", many("!=object"))),
        ("membership", format!("object{}", many(" in object"))),
        ("members", format!("object{}", many(".a"))),
        ("optional members", format!("object{}", many(".?a"))),
        ("indices", format!("object{}", many("[0]"))),
        ("nested indices", format!("{}0{}", many("object["), many("]"))),
        ("calls", format!("object{}", many(".f()"))),
        ("macros", format!("object{}", many(".map(x, x)"))),
        ("nested calls", format!("{}1{}", many("f("), many(")"))),
        ("nested macros", format!("{}true{}", many("object.all(x, "), many(")"))),
        ("parentheses", format!("{}1{}", many("("), many(")"))),
        ("lists", format!("{}{}", many("["), many("]"))),
        ("maps", format!("{}1{}", many("{1:"), many("}"))),
        ("not", format!("{}true", many("!"))),
        ("alternating unary operators", format!("{}1", many("!-"))),
        ("conditionals to the right", format!("{}1", many("true?1:"))),
        ("conditionals in the middle", format!("{}1{}", many("true?"), many(":1"))),
        ("conditionals behind logic", format!("{}1", many("true&&true?1:"))),
        ("conjunctions", format!("true{}", many("&&true"))),
        ("disjunctions of conjunctions", format!("true{}", many("&&true||true"))),
        ("unclosed parentheses", many("(")),
        ("strings", format!("''{}", many("+'('"))),
        ("messages", format!("{}1{}", many("a{b:"), many("}"))),
    ]
}

/// The stack of a thread that serves requests.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_long_chain_of_any_kind_does_not_overflow_the_stack() {
    on_a_small_stack(|| {
        for length in [10, 100, 200, 240, 250, 1000, 5000, 20_000] {
            for (_, source) in chains(length) {
                if let Ok(expression) = Expression::compile(&source) {
                    let _ = expression.truth(&serde_json::json!({"a": [1]}), None);
                }
            }
        }
    });
}

#[test]
fn chains_that_build_deep_trees_are_refused_with_upstreams_words() {
    let balanced = ["conjunctions", "disjunctions of conjunctions"];
    for (name, source) in chains(300) {
        let problem = Expression::compile(&source).err();
        if balanced.contains(&name) {
            assert_eq!(problem, None, "{name}");
        } else {
            let problem = problem.unwrap_or_else(|| panic!("{name} was accepted"));
            assert!(problem.contains("expression recursion limit exceeded: 250"), "{name}: {problem}");
        }
    }
}

#[test]
fn ordinary_rules_are_far_below_the_limit() {
    for (rule, most) in [
        ("self.replicas <= self.maxReplicas", 8),
        ("has(self.a) ? self.a.b.c == oldSelf.a.b.c : true", 12),
        ("self.all(x, x.name.matches('^[a-z((((]+$') && size(x.ports.filter(p, p.port > 1)) == 1)", 20),
        (r#"self.x == r'\' || self.y == "\"(((" || self.z == """a"(((""" // (((((("#, 12),
    ] {
        let found = depth(rule);
        assert!(found <= most, "{rule}: {found}");
    }
}
