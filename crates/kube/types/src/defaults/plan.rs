//! What to do with an object of each definition, worked out once from the tables.

use std::collections::HashMap;
use std::sync::LazyLock;

use aro_base::Timestamp;
use aro_kube_apimachinery::decode::is_plain_utc;
use aro_kube_apimachinery::schema::{Additional, Kind};
use aro_kube_apimachinery::{GroupVersionKind, Schema, Typed, meta::Object};
use serde_json::Value;

use super::hooks::{Hook, hook};
use super::{Malformed, is_zero};
use crate::quantity::Quantity;
use crate::registry::{builtin, shapes};

pub static PLAN: LazyLock<Plan> = LazyLock::new(Plan::read);

#[derive(Debug)]
pub struct Plan {
    types: Vec<TypePlan>,
    by_name: HashMap<String, usize>,
}

/// A definition with members.
#[derive(Debug, Default)]
struct TypePlan {
    hook: Option<Hook>,
    members: HashMap<String, Member>,
    /// What absent members become.
    fill: Vec<(String, Value)>,
}

#[derive(Debug)]
struct Member {
    node: Node,
    /// An explicit zero stays.
    keep: bool,
}

#[derive(Debug, Clone)]
enum Node {
    Leaf,
    /// Not described any further: never touched.
    Opaque,
    Quantity,
    Time {
        micro: bool,
    },
    /// Index into the types.
    Object(usize),
    List(Box<Node>),
    Map(Box<Node>),
}

/// Deeper objects stay as they are; nothing upstream has is nearly as deep, but for schemas of schemas.
const MAX_DEPTH: usize = 64;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

impl Plan {
    fn read() -> Self {
        let (definitions, shapes) = (builtin().definitions(), shapes());
        let mut names: Vec<&str> = definitions
            .iter()
            .filter(|(_, schema)| schema.kind == Kind::Object && !schema.properties.is_empty())
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        let by_name: HashMap<String, usize> =
            names.iter().enumerate().map(|(index, name)| ((*name).to_owned(), index)).collect();
        let types = names
            .iter()
            .filter_map(|name| Some(type_plan(name, definitions.get(name)?, &shapes[*name], &by_name)))
            .collect();
        Self { types, by_name }
    }

    pub fn of(&self, gvk: &GroupVersionKind) -> Option<usize> {
        self.by_name.get(builtin().definition_name(gvk)?).copied()
    }

    pub fn apply(&self, plan: usize, object: &mut Value) -> Result<(), Malformed> {
        let mut walk = Walk { plan: self, problem: None };
        walk.node(&Node::Object(plan), object, 0);
        walk.problem.map_or(Ok(()), Err)
    }
}

fn type_plan(name: &str, schema: &Schema, shape: &Value, by_name: &HashMap<String, usize>) -> TypePlan {
    let listed = |list: &str, key: &str| {
        shape.get(list).and_then(Value::as_array).is_some_and(|names| names.iter().any(|name| name == key))
    };
    let mut plan = TypePlan { hook: hook(name), ..TypePlan::default() };
    for (key, site) in &schema.properties {
        // Kept by the server itself, and large.
        if key == "managedFields" {
            continue;
        }
        let node = node(site, by_name);
        let default =
            Typed::new(site, builtin().definitions()).default_value().filter(|_| !listed("drop", key));
        let special = listed("zero", key);
        let fill = match (&node, default) {
            // A struct is never absent; its own members follow from its plan.
            (_, Some(default)) => Some(default.clone()),
            (Node::Quantity, None) if special => Some("0".into()),
            (Node::Leaf, None) if special => Some(0.into()),
            _ if special || listed("null", key) => Some(Value::Null),
            _ => None,
        };
        let zero_stays = fill.as_ref().is_some_and(|fill| is_zero(fill) && !fill.is_null());
        let int_or_string = Typed::new(site, builtin().definitions()).kind() == Kind::IntOrString;
        let keep = zero_stays || int_or_string || listed("keep", key);
        plan.fill.extend(fill.map(|fill| (key.clone(), fill)));
        plan.members.insert(key.clone(), Member { node, keep });
    }
    plan
}

fn node(site: &Schema, by_name: &HashMap<String, usize>) -> Node {
    if let Some(name) = &site.reference {
        if name.ends_with(".api.resource.Quantity") {
            return Node::Quantity;
        }
        match name.strip_prefix(META) {
            Some("Time") => return Node::Time { micro: false },
            Some("MicroTime") => return Node::Time { micro: true },
            _ => {}
        }
        if let Some(index) = by_name.get(name) {
            return Node::Object(*index);
        }
    }
    let typed = Typed::new(site, builtin().definitions());
    match typed.kind() {
        Kind::Array => match &typed.schema.items {
            Some(items) => Node::List(Box::new(node(items, by_name))),
            None => Node::Opaque,
        },
        Kind::Object => match &typed.schema.additional {
            Additional::Schema(below) => Node::Map(Box::new(node(below, by_name))),
            _ => Node::Opaque,
        },
        Kind::Any => Node::Opaque,
        _ => Node::Leaf,
    }
}

struct Walk<'a> {
    plan: &'a Plan,
    problem: Option<Malformed>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, value: &mut Value, depth: usize) {
        match (node, value) {
            _ if depth > MAX_DEPTH => {}
            (Node::Object(index), Value::Object(members)) => {
                if let Some(plan) = self.plan.types.get(*index) {
                    self.object(plan, members, depth);
                }
            }
            (Node::List(below), Value::Array(items)) if !matches!(**below, Node::Leaf) => {
                for item in items {
                    self.node(below, item, depth + 1);
                }
            }
            (Node::Map(below), Value::Object(members)) if !matches!(**below, Node::Leaf) => {
                for value in members.values_mut() {
                    if matches!(**below, Node::Quantity) {
                        // Lists of resources know nothing finer than a thousandth.
                        self.quantity(value, true);
                    } else {
                        self.node(below, value, depth + 1);
                    }
                }
            }
            (Node::Quantity, value) => self.quantity(value, false),
            (Node::Time { micro: false }, Value::String(text)) if is_plain_utc(text) => {}
            (Node::Time { micro }, Value::String(text)) => match canonical_time(text, *micro) {
                Ok(canonical) => *text = canonical,
                Err(problem) => self.complain(problem),
            },
            _ => {}
        }
    }

    fn object(&mut self, plan: &TypePlan, members: &mut Object, depth: usize) {
        if let Some(hook) = plan.hook {
            hook(members);
        }
        members.retain(|key, value| {
            let Some(member) = plan.members.get(key) else { return true };
            if value.is_null() {
                return false;
            }
            self.node(&member.node, value, depth + 1);
            member.keep || matches!(member.node, Node::Object(_) | Node::Opaque) || !is_zero(value)
        });
        for (key, fill) in &plan.fill {
            if !members.contains_key(key) {
                let mut value = fill.clone();
                if let Some(Member { node: node @ Node::Object(_), .. }) = plan.members.get(key) {
                    self.node(node, &mut value, depth + 1);
                }
                members.insert(key.clone(), value);
            }
        }
    }

    fn quantity(&mut self, value: &mut Value, milli: bool) {
        let read = match &*value {
            Value::String(text) => Quantity::read(text),
            Value::Number(number) => Quantity::read(&number.to_string()),
            Value::Null => Quantity::read(""),
            _ => return,
        };
        match read {
            Ok(quantity) => {
                let quantity = if milli { quantity.round_up_to_milli() } else { quantity };
                *value = Value::String(quantity.to_string());
            }
            Err(problem) => self.complain(problem.to_string()),
        }
    }

    fn complain(&mut self, problem: String) {
        self.problem.get_or_insert(Malformed(problem));
    }
}

/// UTC, without fractions or with exactly six digits of them.
fn canonical_time(text: &str, micro: bool) -> Result<String, String> {
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let refuse = |rest: &str, wanted: &str| {
        format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {wanted:?}")
    };
    let Ok(time) = text.parse::<Timestamp>() else { return Err(refuse(text, "2006")) };
    if !micro {
        return Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    // Exactly six digits: fewer or more are refused where they start to differ.
    let rest = text.get(19..).unwrap_or_default();
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    match digits {
        6 => Ok(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()),
        0..6 => Err(refuse(rest, ".000000")),
        _ => Err(refuse(rest.get(7..).unwrap_or_default(), "Z07:00")),
    }
}
