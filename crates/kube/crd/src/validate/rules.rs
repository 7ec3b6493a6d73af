//! Runs the rules of `x-kubernetes-validations` over an object.

use std::rc::Rc;

use aro_kube_apimachinery::schema::Kind;
use aro_kube_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use crate::cel::eval::{Budget, Failure};
use crate::cel::value::Val;
use crate::node::{Node, Rule};
use crate::validate::{Path, old_item};

/// Longer messages of message expressions are not shown.
const MAX_MESSAGE: usize = 5 * 1024;

pub(crate) fn validate(root: &Node, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let mut run = Run { budget: Budget::new(), errors, stopped: false };
    run.walk(root, new, old, &mut Path::default());
}

struct Run<'e> {
    budget: Budget,
    errors: &'e mut Vec<FieldError>,
    stopped: bool,
}

impl Run<'_> {
    fn walk<'a>(&mut self, node: &'a Node, value: &'a Value, old: Option<&'a Value>, path: &mut Path) {
        if !node.below.rules || self.stopped || value.is_null() {
            return;
        }
        // What did not change is not held against rules that look at the present only.
        let unchanged = old == Some(value);
        for rule in &node.rules {
            let optional = rule.source.optional_old_self == Some(true);
            let runs = match (rule.is_transition(), optional) {
                (true, true) => true,
                (true, false) => old.is_some_and(|old| !old.is_null()),
                (false, _) => !unchanged,
            };
            if runs && !self.stopped {
                self.rule(node, rule, value, old, path);
            }
        }
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let old = old.and_then(|old| old.get(name));
                    match (node.properties.get(name), node.additional.as_deref()) {
                        (Some(node), _) => path.member(name, |path| self.walk(node, value, old, path)),
                        (None, Some(node)) => path.at(name, |path| self.walk(node, value, old, path)),
                        (None, None) => {}
                    }
                }
            }
            Value::Array(items) => {
                let Some(below) = node.items.as_deref().filter(|below| below.below.rules) else { return };
                for (index, item) in items.iter().enumerate() {
                    let old = old_item(node, item, old);
                    path.at(index, |path| self.walk(below, item, old, path));
                }
            }
            _ => {}
        }
    }

    fn rule<'a>(
        &mut self,
        node: &'a Node,
        rule: &'a Rule,
        value: &'a Value,
        old: Option<&'a Value>,
        path: &Path,
    ) {
        let this = Val::of(value, Some(node));
        let old = old.filter(|old| !old.is_null()).map(|old| Val::of(old, Some(node)));
        let old = match rule.source.optional_old_self {
            Some(true) => Some(Val::Optional(old.map(Rc::new))),
            _ => old,
        };
        self.budget.refill();
        let failed = match rule.program.run(this.clone(), old.clone(), &mut self.budget) {
            Ok(Val::Bool(true)) => return,
            Ok(Val::Bool(false)) => {
                let message = self.message(rule, this, old);
                failed(node, rule, value, path, message)
            }
            Ok(_) => wrong(node, path, "cel expression must evaluate to a bool".to_owned()),
            Err(Failure::Exhausted) => {
                self.stopped = true;
                let why = if self.budget.is_exhausted() {
                    "validation failed due to running out of cost budget, no further validation rules will be run"
                        .to_owned()
                } else {
                    format!(
                        "no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        shown(rule)
                    )
                };
                wrong(node, path, why)
            }
            Err(Failure::Error(error)) if error.starts_with("no such overload") => wrong(
                node,
                path,
                format!(
                    "{error}: call arguments did not match a supported operator, function or macro signature for rule: {}",
                    shown(rule)
                ),
            ),
            Err(Failure::Error(error)) => {
                wrong(node, path, format!("{error} evaluating rule: {}", shown(rule)))
            }
        };
        self.errors.push(failed);
    }

    /// What a failed rule says.
    fn message<'a>(&mut self, rule: &'a Rule, this: Val<'a>, old: Option<Val<'a>>) -> String {
        if let Some(program) = &rule.message_program
            && let Ok(Val::Str(text)) = program.run(this, old, &mut self.budget)
        {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
                return text.to_owned();
            }
        }
        let message = rule.source.message.trim();
        if message.is_empty() {
            format!("failed rule: {}", rule.source.rule.trim())
        } else {
            message.to_owned()
        }
    }
}

/// How errors name a rule.
fn shown(rule: &Rule) -> &str {
    let message = rule.source.message.trim();
    if message.is_empty() { rule.source.rule.trim() } else { message }
}

/// A rule that could not be evaluated.
fn wrong(node: &Node, path: &Path, detail: String) -> FieldError {
    FieldError::invalid(place(path), node.type_name(), detail)
}

/// The root has no name.
fn place(path: &Path) -> String {
    if path.as_str().is_empty() { super::NOWHERE.to_owned() } else { path.as_str().to_owned() }
}

fn failed(node: &Node, rule: &Rule, value: &Value, path: &Path, message: String) -> FieldError {
    let field = field_path(node, &rule.source.field_path, path);
    let hidden = matches!(node.kind, Kind::Object | Kind::Array);
    let shown = if hidden { Value::Null } else { value.clone() };
    let mut error = match rule.source.reason.as_str() {
        "FieldValueRequired" => FieldError::required(field, message),
        "FieldValueForbidden" => FieldError::forbidden(field, message),
        // Upstream has no place for a message here.
        "FieldValueDuplicate" => FieldError::duplicate(field, shown),
        _ => FieldError::invalid(field, shown, message),
    };
    error.hidden = hidden && matches!(error.kind, FieldErrorKind::Invalid | FieldErrorKind::Duplicate);
    error
}

/// The place of a failed rule: where the rule stands, or below it.
fn field_path(node: &Node, below: &str, path: &Path) -> String {
    let mut field = path.as_str().to_owned();
    let mut node = Some(node);
    let mut rest = below;
    while let Some(c) = rest.chars().next() {
        let (name, after) = if c == '[' {
            let inner = rest.trim_start_matches('[');
            let quote = inner.chars().next().unwrap_or('\'');
            let inner = inner.trim_start_matches(quote);
            let end = inner.find(quote).unwrap_or(inner.len());
            (&inner[..end], inner[end..].trim_start_matches(quote).trim_start_matches(']'))
        } else {
            let inner = rest.trim_start_matches('.');
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            inner.split_at(end)
        };
        if name.is_empty() {
            break;
        }
        if c == '[' && node.is_some_and(|node| !node.properties.contains_key(name)) {
            field.push('[');
            field.push_str(name);
            field.push(']');
        } else {
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(name);
        }
        node = node.and_then(|node| node.member(name));
        rest = after;
    }
    if field.is_empty() { super::NOWHERE.to_owned() } else { field }
}
