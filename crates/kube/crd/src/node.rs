//! A structural schema compiled for validation: regular expressions and rules are parsed once and shared.
//!
//! A [`Node`] tree mirrors the schema tree. It owns what validation needs and nothing else; pruning, defaults and
//! server-side apply walk the schema itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use aro_kube_apimachinery::schema::{Additional, Expression, Kind, ListKind, Rules, Schema};
use serde_json::Value;

use crate::cel::Program;
use crate::custom_type::Unenforced;
use crate::go_regex::GoRegex;
use crate::validate::formats::Format;

/// One node, ready for validation.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// `None` when the format is not one that is checked.
    pub(crate) format: Option<Format>,
    pub(crate) nullable: bool,
    pub(crate) properties: BTreeMap<String, Node>,
    pub(crate) additional: Option<Box<Node>>,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) required: Vec<String>,
    pub(crate) list: Option<ListKind>,
    pub(crate) embedded: bool,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) rules: Vec<Rule>,
    /// What stands at or below this node, so that whole subtrees can be skipped.
    pub(crate) below: Below,
}

/// What a subtree has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Below {
    pub(crate) rules: bool,
    pub(crate) unique_lists: bool,
    pub(crate) embedded: bool,
}

/// Checks on values.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) choices: Option<Vec<Value>>,
    pub(crate) pattern: Option<Arc<GoRegex>>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

/// One of `x-kubernetes-validations`, compiled.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) program: Arc<Program>,
    pub(crate) message_program: Option<Arc<Program>>,
    pub(crate) source: Expression,
}

impl Rule {
    /// Compares with what was before.
    pub(crate) fn is_transition(&self) -> bool {
        self.program.uses_old()
    }
}

/// Compiles schemas; what occurs twice is compiled once.
#[derive(Default)]
pub(crate) struct Compiler {
    programs: HashMap<String, Result<Arc<Program>, String>>,
    patterns: HashMap<String, Result<Arc<GoRegex>, String>>,
    pub(crate) unenforced: Vec<Unenforced>,
}

impl Compiler {
    pub(crate) fn compile(&mut self, schema: &Schema, path: &mut Vec<String>) -> Node {
        let mut node = Node {
            kind: schema.kind,
            format: schema.format.as_deref().and_then(Format::find),
            nullable: schema.nullable,
            required: schema.required.clone(),
            list: schema.list.clone(),
            embedded: schema.embedded_resource,
            ..Node::default()
        };
        for (name, property) in &schema.properties {
            let child = self.below(property, name, path);
            node.below.include(child.below);
            node.properties.insert(name.clone(), child);
        }
        if let Additional::Schema(additional) = &schema.additional {
            let child = self.below(additional, "*", path);
            node.below.include(child.below);
            node.additional = Some(Box::new(child));
        }
        if let Some(items) = &schema.items {
            let child = self.below(items, "items", path);
            node.below.include(child.below);
            node.items = Some(Box::new(child));
        }
        if let Some(rules) = &schema.rules {
            node.checks = self.checks(rules, path).map(Box::new);
            node.rules = rules.expressions.iter().filter_map(|rule| self.rule(rule, path)).collect();
        }
        node.below.rules |= !node.rules.is_empty();
        node.below.unique_lists |= matches!(node.list, Some(ListKind::Set | ListKind::Map(_)));
        node.below.embedded |= node.embedded;
        node
    }

    fn below(&mut self, schema: &Schema, name: &str, path: &mut Vec<String>) -> Node {
        path.push(name.to_owned());
        let node = self.compile(schema, path);
        path.pop();
        node
    }

    fn rule(&mut self, rule: &Expression, path: &[String]) -> Option<Rule> {
        let program = match self.program(&rule.rule) {
            Ok(program) => program,
            Err(problem) => {
                self.unenforced.push(Unenforced { path: path.join("."), rule: rule.rule.clone(), problem });
                return None;
            }
        };
        let message_program = if rule.message_expression.is_empty() {
            None
        } else {
            // Without it the plain message is shown: the rule is still enforced.
            self.program(&rule.message_expression).ok()
        };
        Some(Rule { program, message_program, source: rule.clone() })
    }

    fn program(&mut self, rule: &str) -> Result<Arc<Program>, String> {
        if let Some(known) = self.programs.get(rule) {
            return known.clone();
        }
        let compiled = Program::compile(rule).map(Arc::new);
        self.programs.insert(rule.to_owned(), compiled.clone());
        compiled
    }

    fn pattern(&mut self, pattern: &str, path: &[String]) -> Option<Arc<GoRegex>> {
        let known =
            self.patterns.entry(pattern.to_owned()).or_insert_with(|| GoRegex::new(pattern).map(Arc::new));
        match known {
            Ok(regex) => Some(Arc::clone(regex)),
            Err(problem) => {
                let (rule, problem) = (format!("pattern {pattern}"), problem.clone());
                self.unenforced.push(Unenforced { path: path.join("."), rule, problem });
                None
            }
        }
    }

    fn checks(&mut self, rules: &Rules, path: &mut Vec<String>) -> Option<Checks> {
        let only_expressions = Rules { expressions: rules.expressions.clone(), ..Rules::default() };
        if *rules == only_expressions {
            return None;
        }
        let mut schemas =
            |schemas: &[Schema]| schemas.iter().map(|schema| self.compile(schema, path)).collect();
        Some(Checks {
            all_of: schemas(&rules.all_of),
            any_of: schemas(&rules.any_of),
            one_of: schemas(&rules.one_of),
            not: rules.not.as_deref().map(|schema| Box::new(self.compile(schema, path))),
            choices: rules.choices.clone(),
            pattern: rules.pattern.as_deref().and_then(|pattern| self.pattern(pattern, path)),
            minimum: rules.minimum,
            exclusive_minimum: rules.exclusive_minimum,
            maximum: rules.maximum,
            exclusive_maximum: rules.exclusive_maximum,
            multiple_of: rules.multiple_of,
            min_length: rules.min_length,
            max_length: rules.max_length,
            min_items: rules.min_items,
            max_items: rules.max_items,
            unique_items: rules.unique_items,
            min_properties: rules.min_properties,
            max_properties: rules.max_properties,
        })
    }
}

impl Below {
    fn include(&mut self, other: Self) {
        self.rules |= other.rules;
        self.unique_lists |= other.unique_lists;
        self.embedded |= other.embedded;
    }
}

impl Node {
    /// The node of a member, declared or not.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// As messages name the type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Any => "",
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::IntOrString => "integer or string",
        }
    }
}
