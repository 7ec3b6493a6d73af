//! Conditions that follow from an object by rule, and what they say of the work as a whole.

use aro_crds::work::v1::{ConditionRule, ConditionRuleType};
use aro_kube_crd::Expression;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use crate::conditions::{COMPLETE, Claim, PROGRESSING, RULE_PREFIX, Truth, find};

const EVALUATED: &str = "ConditionRuleEvaluated";
const EXPRESSION_ERROR: &str = "ConditionRuleExpressionError";
const INVALID: &str = "ConditionRuleInvalid";
const AGGREGATED: &str = "ConditionRulesAggregated";

/// What one object's rules say of it.
pub(crate) fn evaluate(rules: &[ConditionRule], object: &Value, generation: i64) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for rule in rules {
        let claim = evaluate_one(rule, object).at(generation);
        if claims.iter().all(|known| known.kind != claim.kind) {
            claims.push(claim);
        }
    }
    claims
}

fn evaluate_one(rule: &ConditionRule, object: &Value) -> Claim {
    let kind = if rule.condition.is_empty() { COMPLETE } else { rule.condition.as_str() };
    match rule.kind {
        ConditionRuleType::WellKnownConditions => {
            let Some((yes, message)) = well_known(kind, object) else {
                let what = object["kind"].as_str().unwrap_or_default();
                let message = format!("nothing is known of condition {kind} of a {what}");
                return Claim::new(kind, Truth::Unknown, INVALID, message);
            };
            let message = if rule.message.is_empty() { message.to_owned() } else { rule.message.clone() };
            Claim::new(kind, Truth::of(yes), EVALUATED, message)
        }
        ConditionRuleType::Cel => by_expressions(kind, rule, object),
    }
}

/// The built-in rules of a kind.
fn well_known(condition: &str, object: &Value) -> Option<(bool, &'static str)> {
    if condition != COMPLETE {
        return None;
    }
    let has = |wanted: &str| {
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == wanted && condition["status"] == "True")
    };
    match (object["apiVersion"].as_str()?, object["kind"].as_str()?) {
        ("batch/v1", "Job") => {
            let yes = has("Complete") || has("Failed");
            Some((yes, if yes { "Job is finished" } else { "Job is not finished" }))
        }
        ("v1", "Pod") => {
            let yes = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            Some((yes, if yes { "Pod is in phase Succeeded or Failed" } else { "Pod has not completed" }))
        }
        _ => None,
    }
}

fn by_expressions(kind: &str, rule: &ConditionRule, object: &Value) -> Claim {
    if rule.cel_expressions.is_empty() {
        return Claim::new(kind, Truth::Unknown, INVALID, "the rule has no expression");
    }
    let mut all = true;
    for source in &rule.cel_expressions {
        let result = Expression::compile(source).and_then(|expression| expression.truth(object, None));
        match result {
            Ok(truth) => all &= truth,
            Err(error) => {
                return Claim::new(kind, Truth::Unknown, EXPRESSION_ERROR, format!("{source}: {error}"));
            }
        }
    }
    let said = if rule.message_expression.is_empty() {
        None
    } else {
        let result = Value::Bool(all);
        let text = Expression::compile(&rule.message_expression)
            .and_then(|expression| expression.text(object, Some(&result)));
        match text {
            Ok(text) => Some(text),
            Err(error) => {
                let message = format!("{}: {error}", rule.message_expression);
                return Claim::new(kind, Truth::Unknown, EXPRESSION_ERROR, message);
            }
        }
    };
    Claim::new(kind, Truth::of(all), EVALUATED, said.unwrap_or_else(|| rule.message.clone()))
}

/// What the conditions of all objects say of the work: `Progressing` if any reports it, the others if all do that have
/// the condition.
pub(crate) fn aggregate(manifests: &[&[Condition]], generation: i64) -> Vec<Claim> {
    let ruled = |condition: &&Condition| condition.reason.starts_with(RULE_PREFIX);
    let mut kinds: Vec<&str> = Vec::new();
    for condition in manifests.iter().flat_map(|conditions| conditions.iter()).filter(ruled) {
        if !kinds.contains(&condition.type_.as_str()) {
            kinds.push(&condition.type_);
        }
    }
    kinds.into_iter().map(|kind| aggregate_one(kind, manifests, generation)).collect()
}

fn aggregate_one(kind: &str, manifests: &[&[Condition]], generation: i64) -> Claim {
    let found: Vec<&Condition> = manifests
        .iter()
        .filter_map(|conditions| find(conditions, kind))
        .filter(|condition| condition.reason.starts_with(RULE_PREFIX))
        .collect();
    let count = |word: &str| found.iter().filter(|condition| condition.status == word).count();
    let (yes, no, total) = (count("True"), count("False"), found.len());
    let truth = match kind {
        PROGRESSING if yes > 0 => Truth::True,
        PROGRESSING if no == total => Truth::False,
        PROGRESSING => Truth::Unknown,
        _ if no > 0 => Truth::False,
        _ if yes == total => Truth::True,
        _ => Truth::Unknown,
    };
    let message = match found.as_slice() {
        [one] => one.message.clone(),
        _ => format!("{yes} of {total} manifests have condition {kind}"),
    };
    Claim::new(kind, truth, AGGREGATED, message).at(generation)
}

#[cfg(test)]
mod tests {
    use aro_base::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::conditions::settle;

    fn cel(condition: &str, expressions: &[&str], message: &str) -> ConditionRule {
        ConditionRule {
            condition: condition.to_owned(),
            kind: ConditionRuleType::Cel,
            cel_expressions: expressions.iter().map(|text| (*text).to_owned()).collect(),
            message: "plain".to_owned(),
            message_expression: message.to_owned(),
        }
    }

    #[test]
    fn rules_make_conditions() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
            "status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}});
        let well = ConditionRule { condition: "Complete".to_owned(), ..ConditionRule::default() };
        for (rule, truth, reason, message) in [
            (well.clone(), Truth::True, EVALUATED, "Job is finished"),
            (ConditionRule { condition: "Other".to_owned(), ..well }, Truth::Unknown, INVALID, ""),
            (cel("C", &["object.status.succeeded == 1"], ""), Truth::True, EVALUATED, "plain"),
            (
                cel("C", &["object.status.succeeded == 1", "object.status.succeeded > 1"], ""),
                Truth::False,
                EVALUATED,
                "plain",
            ),
            (
                cel(
                    "C",
                    &["object.status.succeeded == 1"],
                    r#"result ? object.metadata.name + " is done" : "no""#,
                ),
                Truth::True,
                EVALUATED,
                "j is done",
            ),
            (cel("C", &["object.status.missing == 1"], ""), Truth::Unknown, EXPRESSION_ERROR, ""),
            (cel("C", &["object."], ""), Truth::Unknown, EXPRESSION_ERROR, ""),
            (cel("C", &["1 + 1"], ""), Truth::Unknown, EXPRESSION_ERROR, ""),
            (cel("C", &[], ""), Truth::Unknown, INVALID, ""),
        ] {
            let claims = evaluate(std::slice::from_ref(&rule), &job, 3);
            assert_eq!((claims[0].truth, claims[0].reason), (truth, reason), "{rule:?}: {claims:?}");
            assert!(claims[0].message.contains(message), "{claims:?}");
            assert_eq!(claims[0].generation, Some(3));
        }
    }

    #[test]
    fn a_work_is_what_all_its_objects_are_and_progresses_while_one_does() {
        let conditions = |kind: &str, truth| {
            settle(&[], vec![Claim::new(kind, truth, EVALUATED, "m")], Timestamp::UNIX_EPOCH, None)
        };
        use Truth::{False, True, Unknown};
        for (kind, each, expected) in [
            (COMPLETE, vec![True, True], True),
            (COMPLETE, vec![True, False], False),
            (COMPLETE, vec![True, Unknown], Unknown),
            (PROGRESSING, vec![True, False], True),
            (PROGRESSING, vec![False, False], False),
            (PROGRESSING, vec![False, Unknown], Unknown),
        ] {
            let all: Vec<Vec<Condition>> = each.iter().map(|truth| conditions(kind, *truth)).collect();
            let all: Vec<&[Condition]> = all.iter().map(Vec::as_slice).collect();
            let claims = aggregate(&all, 2);
            assert_eq!((claims.len(), claims[0].truth), (1, expected), "{kind} of {each:?}");
        }
        let foreign = settle(
            &[],
            vec![Claim::new("Applied", True, "AppliedManifestComplete", "m")],
            Timestamp::UNIX_EPOCH,
            None,
        );
        assert!(aggregate(&[&foreign], 1).is_empty());
    }
}
