//! CEL rules: values, messages and errors as a real server gives them. The tables were recorded from one.

mod support;

use aro_kube_crd::CustomType;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{lines, message, of, with_spec};

/// What an expression evaluates to, as text; or the error it ends with.
fn evaluate(expression: &str) -> String {
    let shown = format!("'%s'.format([{expression}])");
    let custom =
        of(json!({"type": "object", "properties": {"e": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self == 'never'", "messageExpression": shown, "message": "no value"},
            {"rule": format!("{shown} != 'never'"), "message": "rule"},
        ]}}}));
    assert!(custom.unenforced().is_empty(), "{:?}", custom.unenforced());
    let errors = custom.validate(&json!({"e": "x"}), None);
    match errors.as_slice() {
        [only] => only.detail.clone(),
        [_, error] => error.detail.clone(),
        _ => String::new(),
    }
}

#[test]
fn expressions_have_upstreams_values() {
    for (expression, value) in [
        ("'hello'.charAt(1)", "e"),
        ("'hello'.indexOf('l', 3)", "3"),
        ("'hello'.indexOf('z')", "-1"),
        ("'hello'.indexOf('l', 9)", "-1"),
        ("'hello'.lastIndexOf('l', 2)", "2"),
        ("'hello'.lastIndexOf('')", "5"),
        ("['a','b'].join('-')", "a-b"),
        ("'ÄbC'.lowerAscii()", "Äbc"),
        ("'aaa'.replace('a','b',2)", "bba"),
        ("'aaa'.replace('','-')", "-a-a-a-"),
        ("'a,b,c'.split(',', 2)", r#"["a", "b,c"]"#),
        ("'abc'.split('', 2)", r#"["a", "bc"]"#),
        ("'a,b'.split(',', 0)", "[]"),
        ("'hello'.substring(1,3)", "el"),
        ("'  x '.trim()", "x"),
        ("'abc123'.find('[0-9]+')", "123"),
        ("'a1b22'.findAll('[0-9]+')", r#"["1", "22"]"#),
        ("size('äö')", "2"),
        ("[1,2,3].sum()", "6"),
        ("[3,1,2].min()", "1"),
        ("[1,2].isSorted()", "true"),
        ("[1,2,1].lastIndexOf(1)", "2"),
        ("sets.equivalent([1,2,2],[2,1])", "true"),
        ("sets.intersects([1],[2])", "false"),
        ("url('https://user:pw@example.com:80/path%20x/y?k=v').getEscapedPath()", "/path%20x/y"),
        ("url('https://user:pw@example.com:80/').getHost()", "example.com:80"),
        ("url('https://[::1]:80').getHostname()", "::1"),
        ("url('https://a/?k=v&k=w&z=').getQuery()", r#"{"k":["v", "w"], "z":[""]}"#),
        ("isURL('../x')", "false"),
        ("ip('::1').family()", "6"),
        ("ip.isCanonical('2001:DB8::1')", "false"),
        ("isIP('::ffff:1.2.3.4')", "false"),
        ("cidr('192.168.1.5/24').containsIP('192.168.1.9')", "true"),
        ("string(cidr('192.168.1.5/24').masked())", "192.168.1.0/24"),
        ("isCIDR('10.0.0.1/08')", "false"),
        ("quantity('1.5Gi').isGreaterThan(quantity('1Gi'))", "true"),
        ("quantity('1').sub(3).asInteger()", "-2"),
        ("quantity('1500m').asApproximateFloat()", "1.5"),
        ("semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))", "true"),
        ("isSemver('v1.0', true)", "true"),
        ("format.dns1123Label().validate('my-name').hasValue()", "false"),
        ("format.uuid().validate('x').value()", r#"["does not match the UUID format"]"#),
        ("format.dns1123LabelPrefix().validate('a-').hasValue()", "false"),
        ("duration('1h2m3.5s')", "3723.5s"),
        ("timestamp('2023-05-28T12:34:56.789Z').getDayOfWeek()", "0"),
        ("timestamp('2023-05-28T12:34:56.789Z').getHours('-02:30')", "10"),
        ("timestamp('2023-05-28T12:34:56Z') - timestamp('2023-05-28T12:34:00Z')", "56s"),
        ("timestamp('2023-05-28T12:34:56Z') + duration('1h')", "2023-05-28T13:34:56Z"),
        ("int(-3.9)", "-3"),
        ("string(123456789.0)", "1.23456789e+08"),
        ("-7 % 3", "-1"),
        ("[1,2,3].map(x, x > 1, x * 2)", "[4, 6]"),
        ("[1,2,3].all(i, v, i < v)", "true"),
        ("{'a':1}.transformMap(k, v, v + 1)", r#"{"a":2}"#),
        ("{'a':{'b':1}}.?x.b.orValue(7)", "7"),
        ("optional.of(2).optMap(x, x + 1).value()", "3"),
        ("dyn(1) == dyn(1.0)", "true"),
        (
            "'%.2f %x %X %o %b %e'.format([1.234, 255, 'hi', 8, 5, 1234.5])",
            "1.23 ff 6869 10 101 1.234500×10⁰³",
        ),
        ("[1,'a',1.5,null,true]", r#"[1, "a", 1.500000, null, true]"#),
        ("1/0 == 1 || true", "true"),
        ("false && 1/0 == 1", "false"),
        ("type(self) == string", "true"),
    ] {
        assert_eq!(evaluate(expression), value, "{expression}");
    }
}

#[test]
fn errors_of_expressions_read_like_upstreams() {
    for (expression, error) in [
        ("[1][5]", "index out of bounds: 5"),
        ("{'a':1}['z']", "no such key: z"),
        ("1 % 0", "modulus by zero"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 * 2", "integer overflow"),
        ("int(self)", "type conversion error from 'string' to 'int'"),
        ("'abc'.charAt(9)", "index out of range: 9"),
        ("'abc'.substring(-1)", "index out of range: -1"),
        ("[].min()", "min called on empty list"),
        ("optional.none().value()", "optional.none() dereference"),
        ("self.matches(self + '(')", "error parsing regexp: missing closing ): `x(`"),
        ("url(self)", "URL parse error during conversion from string: parse \"x\": invalid URI for request"),
    ] {
        assert_eq!(evaluate(expression), format!("{error} evaluating rule: rule"), "{expression}");
    }
}

fn rules() -> CustomType {
    of(json!({"type": "object", "properties": {"spec": {"type": "object",
    "x-kubernetes-validations": [
        {"rule": "self.a != 'bad'"},
        {"rule": "self.a != 'bad2'", "message": "msg here"},
        {"rule": "self.a != 'bad3'", "message": "m3", "reason": "FieldValueForbidden", "fieldPath": ".a"},
        {"rule": "self.a != 'bad4'", "message": "m4", "reason": "FieldValueRequired"},
        {"rule": "self.a != 'bad5'", "message": "m5", "reason": "FieldValueDuplicate", "fieldPath": ".b.c"},
        {"rule": "self.a != 'bad6'", "messageExpression": "'hi ' + self.a"},
        {"rule": "self.a != 'bad7'", "messageExpression": "''", "message": "fallback"},
        {"rule": "self.a != 'bad8'", "messageExpression": "self.l[5]"},
        {"rule": "self.a != 'err' || self.l[7] == 'x'"},
    ],
    "properties": {
        "a": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}},
        "b": {"type": "object", "properties": {"c": {"type": "string"}}},
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self != 3"}]},
        "li": {"type": "array", "maxItems": 5, "x-kubernetes-validations": [{"rule": "size(self) != 3"}],
            "items": {"type": "string",
                "x-kubernetes-validations": [{"rule": "self != 'z'", "message": "no z"}]}},
        "mm": {"type": "object", "additionalProperties": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self != 'z'"}]}},
    }}}}))
}

#[test]
fn failed_rules_read_like_upstreams() {
    let custom = rules();
    let spec = |a: &str| json!({"a": a, "l": ["x"]});
    for (spec, expected) in [
        (spec("bad"), "spec: Invalid value: failed rule: self.a != 'bad'"),
        (spec("bad2"), "spec: Invalid value: msg here"),
        (spec("bad3"), "spec.a: Forbidden: m3"),
        (spec("bad4"), "spec: Required value: m4"),
        (spec("bad5"), "spec.b.c: Duplicate value"),
        (spec("bad6"), "spec: Invalid value: hi bad6"),
        (spec("bad7"), "spec: Invalid value: fallback"),
        (spec("bad8"), "spec: Invalid value: failed rule: self.a != 'bad8'"),
        (
            spec("err"),
            r#"spec: Invalid value: "object": index out of bounds: 7 evaluating rule: self.a != 'err' || self.l[7] == 'x'"#,
        ),
        (json!({"a": "x", "n": 3}), "spec.n: Invalid value: 3: failed rule: self != 3"),
        (json!({"a": "x", "li": ["a", "z"]}), r#"spec.li[1]: Invalid value: "z": no z"#),
        (
            json!({"a": "x", "li": ["a", "z", "b"]}),
            r#"[spec.li: Invalid value: failed rule: size(self) != 3, spec.li[1]: Invalid value: "z": no z]"#,
        ),
        (
            json!({"a": "x", "mm": {"k.x": "z"}}),
            r#"spec.mm[k.x]: Invalid value: "z": failed rule: self != 'z'"#,
        ),
        (
            json!({"a": "bad2", "li": ["1", "2", "3", "4", "5", "6"]}),
            "[spec.li: Too many: 6: must have at most 5 items, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]",
        ),
    ] {
        assert_eq!(message(&custom, &json!({"spec": spec})), expected, "{spec}");
    }
}

#[test]
fn rules_see_values_through_the_schema() {
    let custom = with_spec(json!({
        "x-y": {"type": "string"},
        "dt": {"type": "string", "format": "date-time",
            "x-kubernetes-validations": [{"rule": "self.getFullYear() == 2020"}]},
        "du": {"type": "string", "format": "duration",
            "x-kubernetes-validations": [{"rule": "self < duration('1m')"}]},
        "by": {"type": "string", "format": "byte", "x-kubernetes-validations": [{"rule": "size(self) == 1"}]},
        "ios": {"x-kubernetes-int-or-string": true,
            "x-kubernetes-validations": [{"rule": "type(self) == int ? self > 2 : self == 'a'"}]},
        "sets": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "self == ['a','b']"}]},
        "esc": {"type": "object", "properties": {"a-b": {"type": "string"}, "namespace": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": "self.a__dash__b == self.__namespace__"}]},
        "num": {"type": "number", "x-kubernetes-validations": [{"rule": "self / 2.0 == 1.5"}]},
    }));
    for (spec, failed) in [
        (json!({"dt": "2020-01-01T00:00:00Z", "du": "1s", "by": "YQ==", "ios": 3, "sets": ["b", "a"]}), ""),
        (json!({"esc": {"a-b": "x", "namespace": "x"}, "num": 3}), ""),
        (json!({"esc": {"a-b": "x", "namespace": "y"}}), "spec.esc"),
        (json!({"dt": "2021-01-01T00:00:00Z"}), "spec.dt"),
        (json!({"du": "2m"}), "spec.du"),
        (json!({"by": "YWE="}), "spec.by"),
        (json!({"ios": "b"}), "spec.ios"),
        (json!({"ios": 1}), "spec.ios"),
        (json!({"sets": ["a", "c"]}), "spec.sets"),
    ] {
        let errors = custom.validate(&json!({"spec": spec}), None);
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields.join(","), failed, "{spec}: {}", lines(&errors));
    }
}

#[test]
fn transition_rules_run_where_something_was_before() {
    let same = json!([{"rule": "self == oldSelf"}]);
    let custom = with_spec(json!({
        "n": {"type": "integer", "x-kubernetes-validations": same},
        "o": {"type": "string", "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": true, "message": "opt"}]},
        "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"},
                "v": {"type": "string", "x-kubernetes-validations": same}}}},
        "plain": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'good'"}]},
    }));
    let old =
        json!({"spec": {"n": 1, "lm": [{"k": "a", "v": "1"}, {"k": "b", "v": "1"}], "plain": "was bad"}});
    let check = |spec: Value| lines(&custom.validate(&json!({"spec": spec}), Some(&old)));
    assert_eq!(check(json!({"n": 2})), "spec.n: Invalid value: 2: failed rule: self == oldSelf");
    assert_eq!(check(json!({"plain": "was bad"})), "");
    assert_eq!(
        check(json!({"plain": "is bad"})),
        r#"spec.plain: Invalid value: "is bad": failed rule: self == 'good'"#
    );
    assert_eq!(
        check(json!({"lm": [{"k": "b", "v": "2"}, {"k": "a", "v": "1"}, {"k": "c", "v": "9"}]})),
        r#"spec.lm[0].v: Invalid value: "2": failed rule: self == oldSelf"#
    );
    assert_eq!(check(json!({"o": "x"})), r#"spec.o: Invalid value: "x": opt"#);
    assert_eq!(lines(&custom.validate(&json!({"spec": {"n": 2, "o": "new"}}), None)), "");
}

#[test]
fn runaway_rules_are_stopped() {
    let custom =
        with_spec(json!({"l": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations":
        [{"rule": "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))"}]}}));
    let items: Vec<i32> = (0..1000).collect();
    let errors = custom.validate(&json!({"spec": {"l": items}}), None);
    assert!(errors[0].detail.contains("call cost exceeds limit"), "{}", lines(&errors));
}

#[test]
fn what_cannot_be_enforced_is_listed() {
    let custom = with_spec(json!({"a": {"type": "string", "x-kubernetes-validations": [
        {"rule": "nosuch(self)"}, {"rule": "self =="}, {"rule": "self != 'x'"}]}}));
    let rules: Vec<_> =
        custom.unenforced().iter().map(|rule| (rule.path.as_str(), rule.rule.as_str())).collect();
    assert_eq!(rules, [("spec.a", "nosuch(self)"), ("spec.a", "self ==")]);
    assert_eq!(message(&custom, &json!({"spec": {"a": "x"}})).lines().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_rule_panics(source in "\\PC{0,30}", words in proptest::collection::vec(prop_oneof![
        Just("self"), Just("."), Just("("), Just(")"), Just("["), Just("]"), Just("all"), Just("x"), Just(","),
        Just("=="), Just("&&"), Just("!"), Just("?"), Just(":"), Just("'a'"), Just("1"), Just("1.5"), Just("{"),
        Just("}"), Just("-"), Just("size"), Just("split"), Just("has"), Just("map"), Just("in"), Just("format"),
    ], 0..14)) {
        for rule in [source, words.concat()] {
            let custom = with_spec(json!({"a": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}}));
            custom.validate(&json!({"spec": {"a": "äb"}}), None);
        }
    }
}
