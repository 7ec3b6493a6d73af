//! Runs expressions, counting every step.

use std::borrow::Cow;
use std::rc::Rc;

use crate::cel::functions::{arithmetic, strings};
use crate::cel::lower::{Expr, Loop, LoopKind, Name, Operator};
use crate::cel::nesting;
use crate::cel::value::Val;
use crate::go_regex;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// In the language: `no such key: x`, … Absorbed by `||` and `&&` when the other side decides.
    Error(String),
    /// One rule, or all rules of an object together, took too many steps.
    Exhausted,
}

impl Failure {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }
}

pub(crate) type Res<'a> = Result<Val<'a>, Failure>;

/// Steps that one expression may take.
const PER_RULE: u64 = 1_000_000;
/// Steps that all expressions on one object may take together.
const PER_OBJECT: u64 = 10_000_000;

/// Steps left.
#[derive(Debug)]
pub(crate) struct Budget {
    rule: u64,
    object: u64,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { rule: PER_RULE, object: PER_OBJECT }
    }

    /// To be called before each rule.
    pub(crate) fn refill(&mut self) {
        self.rule = PER_RULE;
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.object == 0
    }

    fn charge(&mut self, steps: u64) -> Result<(), Failure> {
        self.rule = self.rule.saturating_sub(steps);
        self.object = self.object.saturating_sub(steps);
        if self.rule == 0 || self.object == 0 { Err(Failure::Exhausted) } else { Ok(()) }
    }
}

/// One run.
pub(crate) struct Machine<'a, 'b> {
    this: Val<'a>,
    old: Option<Val<'a>>,
    locals: Vec<Val<'a>>,
    budget: &'b mut Budget,
}

impl<'a, 'b> Machine<'a, 'b> {
    pub(crate) fn new(this: Val<'a>, old: Option<Val<'a>>, budget: &'b mut Budget) -> Self {
        Self { this, old, locals: Vec::new(), budget }
    }

    pub(crate) fn eval(&mut self, expr: &'a Expr) -> Res<'a> {
        self.budget.charge(1)?;
        nesting::step(|| self.value_of(expr))
    }

    fn value_of(&mut self, expr: &'a Expr) -> Res<'a> {
        match expr {
            Expr::Null => Ok(Val::Null),
            Expr::Bool(b) => Ok(Val::Bool(*b)),
            Expr::Int(i) => Ok(Val::Int(*i)),
            Expr::Uint(u) => Ok(Val::Uint(*u)),
            Expr::Double(d) => Ok(Val::Double(*d)),
            Expr::Str(text) => Ok(Val::Str(Cow::Borrowed(text))),
            Expr::Bytes(bytes) => Ok(Val::Bytes(Rc::new(bytes.clone()))),
            Expr::Type(name) => Ok(Val::Type(name)),
            Expr::This => Ok(self.this.clone()),
            Expr::Old => self.old.clone().ok_or_else(|| Failure::error("no such attribute(s): oldSelf")),
            Expr::Local(slot) => {
                self.locals.get(*slot).cloned().ok_or_else(|| Failure::error("no such variable"))
            }
            Expr::Field(of, name) => field(self.eval(of)?, name),
            Expr::OptField(of, name) => Ok(optional_field(self.eval(of)?, name)),
            Expr::Has(of, name) => has(&self.eval(of)?, name),
            Expr::Index(of, at) => {
                let (of, at) = (self.eval(of)?, self.eval(at)?);
                index(of, &at)
            }
            Expr::OptIndex(of, at) => {
                let (of, at) = (self.eval(of)?, self.eval(at)?);
                Ok(optional_index(of, &at))
            }
            Expr::And(a, b) => self.logical(a, b, false),
            Expr::Or(a, b) => self.logical(a, b, true),
            Expr::Not(a) => self.truth(a).map(|truth| Val::Bool(!truth)),
            Expr::Negate(a) => arithmetic::negate(&self.eval(a)?),
            Expr::If(condition, then, otherwise) => {
                let branch = if self.truth(condition)? { then } else { otherwise };
                self.eval(branch)
            }
            Expr::Binary(operator, a, b) => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                self.budget.charge(a.weight().min(b.weight()))?;
                binary(*operator, &a, &b, self.budget)
            }
            Expr::List(items) => self.list(items),
            Expr::Map(entries) => self.map(entries),
            Expr::Loop(looped) => self.run_loop(looped),
            Expr::OptMap(of, body, flat) => match self.eval(of)? {
                Val::Optional(None) => Ok(Val::Optional(None)),
                Val::Optional(Some(value)) => {
                    let mapped = self.with(&[Rc::unwrap_or_clone(value)], body)?;
                    Ok(if *flat { mapped } else { Val::some(mapped) })
                }
                other => Err(no_overload("optMap", &[&other])),
            },
            Expr::Matches(text, regex) => match self.eval(text)? {
                Val::Str(text) => {
                    self.budget.charge(1 + text.len() as u64)?;
                    Ok(Val::Bool(regex.is_match(&text)))
                }
                other => Err(no_overload("matches", &[&other])),
            },
            Expr::Call(function, args) => {
                let args = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
                let weights = args.iter().map(Val::weight);
                let cost = if function.compares_all { weights.product() } else { weights.sum() };
                self.budget.charge(cost)?;
                if function.compiles
                    && let [_, Val::Str(pattern), ..] = args.as_slice()
                {
                    self.budget.charge(go_regex::compile_cost(pattern))?;
                }
                let value = (function.run)(&args)?;
                self.budget.charge(value.weight())?;
                Ok(value)
            }
        }
    }

    fn truth(&mut self, expr: &'a Expr) -> Result<bool, Failure> {
        match self.eval(expr)? {
            Val::Bool(truth) => Ok(truth),
            other => Err(no_overload("_&&_", &[&other])),
        }
    }

    /// `a || b` with `decisive` true, `a && b` with false: the decisive value on either side wins over an error.
    fn logical(&mut self, a: &'a Expr, b: &'a Expr, decisive: bool) -> Res<'a> {
        match self.truth(a) {
            Ok(truth) if truth == decisive => Ok(Val::Bool(decisive)),
            Ok(_) => self.truth(b).map(Val::Bool),
            Err(Failure::Exhausted) => Err(Failure::Exhausted),
            Err(error) => match self.truth(b) {
                Ok(truth) if truth == decisive => Ok(Val::Bool(decisive)),
                Err(Failure::Exhausted) => Err(Failure::Exhausted),
                _ => Err(error),
            },
        }
    }

    fn with(&mut self, values: &[Val<'a>], body: &'a Expr) -> Res<'a> {
        let depth = self.locals.len();
        self.locals.extend_from_slice(values);
        let value = self.eval(body);
        self.locals.truncate(depth);
        value
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> Res<'a> {
        let mut list = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.eval(item)?, optional) {
                (Val::Optional(None), true) => {}
                (Val::Optional(Some(value)), true) => list.push(Rc::unwrap_or_clone(value)),
                (value, _) => list.push(value),
            }
        }
        Ok(Val::list(list))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Res<'a> {
        let mut map = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            match (self.eval(value)?, optional) {
                (Val::Optional(None), true) => {}
                (Val::Optional(Some(value)), true) => map.push((key, Rc::unwrap_or_clone(value))),
                (value, _) => map.push((key, value)),
            }
        }
        Ok(Val::Map(Rc::new(map)))
    }

    fn run_loop(&mut self, looped: &'a Loop) -> Res<'a> {
        let range = self.eval(&looped.range)?;
        let pairs = pairs(&range, looped.two)?;
        let mut state = State::new(looped.kind);
        for (first, second) in pairs {
            self.budget.charge(1)?;
            let depth = self.locals.len();
            self.locals.push(first);
            self.locals.extend(second);
            let outcome = self.step(looped, &mut state, depth);
            self.locals.truncate(depth);
            if outcome? {
                break;
            }
        }
        state.finish()
    }

    /// One turn. `true` ends the loop.
    fn step(&mut self, looped: &'a Loop, state: &mut State<'a>, depth: usize) -> Result<bool, Failure> {
        if let Some(filter) = &looped.filter
            && !self.truth(filter)?
        {
            return Ok(false);
        }
        match looped.kind {
            LoopKind::All | LoopKind::Exists => {
                let decisive = looped.kind == LoopKind::Exists;
                match self.truth(&looped.body) {
                    Ok(truth) if truth == decisive => {
                        state.decided = true;
                        return Ok(true);
                    }
                    Ok(_) => {}
                    Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                    Err(error) => state.error = Some(error),
                }
            }
            LoopKind::ExistsOne => state.count += usize::from(self.truth(&looped.body)?),
            LoopKind::Filter => {
                if self.truth(&looped.body)? {
                    state.list.extend(self.locals.get(depth).cloned());
                }
            }
            LoopKind::Collect => {
                let value = self.eval(&looped.body)?;
                state.list.push(value);
            }
            LoopKind::TransformMap => {
                let value = self.eval(&looped.body)?;
                let key = self.locals.get(depth).cloned().unwrap_or(Val::Null);
                state.map.push((key, value));
            }
            LoopKind::TransformMapEntry => {
                let value = self.eval(&looped.body)?;
                state.map.extend(value.entries().unwrap_or_default());
            }
        }
        Ok(false)
    }
}

/// What a loop gathers.
struct State<'a> {
    kind: LoopKind,
    decided: bool,
    error: Option<Failure>,
    count: usize,
    list: Vec<Val<'a>>,
    map: Vec<(Val<'a>, Val<'a>)>,
}

impl<'a> State<'a> {
    fn new(kind: LoopKind) -> Self {
        Self { kind, decided: false, error: None, count: 0, list: Vec::new(), map: Vec::new() }
    }

    fn finish(self) -> Res<'a> {
        match self.kind {
            LoopKind::All | LoopKind::Exists => {
                let decisive = self.kind == LoopKind::Exists;
                match self.error {
                    Some(error) if !self.decided => Err(error),
                    _ => Ok(Val::Bool(self.decided == decisive)),
                }
            }
            LoopKind::ExistsOne => Ok(Val::Bool(self.count == 1)),
            LoopKind::Filter | LoopKind::Collect => Ok(Val::list(self.list)),
            LoopKind::TransformMap | LoopKind::TransformMapEntry => Ok(Val::Map(Rc::new(self.map))),
        }
    }
}

type Pair<'a> = (Val<'a>, Option<Val<'a>>);

/// What a loop goes over: items or keys; with two variables, index and item or key and value.
fn pairs<'a>(range: &Val<'a>, two: bool) -> Result<Vec<Pair<'a>>, Failure> {
    if let Some(items) = range.items() {
        return Ok(items
            .enumerate()
            .map(|(index, item)| if two { (Val::Int(index as i64), Some(item)) } else { (item, None) })
            .collect());
    }
    let entries = range.entries().ok_or_else(|| no_overload("comprehension", &[range]))?;
    Ok(entries.into_iter().map(|(key, value)| (key, two.then_some(value))).collect())
}

fn no_such_key(name: &str) -> Failure {
    Failure::Error(format!("no such key: {name}"))
}

pub(crate) fn no_overload(function: &str, args: &[&Val<'_>]) -> Failure {
    let types: Vec<_> = args.iter().map(|arg| arg.type_name()).collect();
    Failure::Error(format!("no such overload: {function}({})", types.join(", ")))
}

fn field<'a>(of: Val<'a>, name: &Name) -> Res<'a> {
    match of {
        // Selecting from an optional yields an optional.
        Val::Optional(_) => Ok(optional_field(of, name)),
        _ => of.field(&name.written, name.unescaped.as_deref()).ok_or_else(|| no_such_key(&name.written)),
    }
}

fn optional_field<'a>(of: Val<'a>, name: &Name) -> Val<'a> {
    let value = match of {
        Val::Optional(None) => None,
        Val::Optional(Some(value)) => value.field(&name.written, name.unescaped.as_deref()),
        of => of.field(&name.written, name.unescaped.as_deref()),
    };
    Val::Optional(value.map(Rc::new))
}

fn has<'a>(of: &Val<'_>, name: &Name) -> Res<'a> {
    let found = |of: &Val<'_>| of.field(&name.written, name.unescaped.as_deref()).is_some();
    match of {
        Val::Optional(None) => Ok(Val::Bool(false)),
        Val::Optional(Some(value)) => Ok(Val::Bool(found(value))),
        _ if of.type_name() == "map" => Ok(Val::Bool(found(of))),
        _ => Err(no_overload("has", &[of])),
    }
}

/// The position that a number means in a list.
fn position(at: &Val<'_>) -> Option<i64> {
    match at {
        Val::Int(at) => Some(*at),
        Val::Uint(at) => i64::try_from(*at).ok(),
        Val::Double(at) if at.fract() == 0.0 => Some(*at as i64),
        _ => None,
    }
}

fn at<'a>(of: &Val<'a>, index: &Val<'_>) -> Option<Val<'a>> {
    if let Some(mut items) = of.items() {
        return items.nth(usize::try_from(position(index)?).ok()?);
    }
    of.key(index)
}

fn index<'a>(of: Val<'a>, index: &Val<'_>) -> Res<'a> {
    if matches!(of, Val::Optional(_)) {
        return Ok(optional_index(of, index));
    }
    at(&of, index).ok_or_else(|| {
        let shown = strings::plain(index);
        if of.is_list() {
            Failure::Error(format!("index out of bounds: {shown}"))
        } else {
            no_such_key(&shown)
        }
    })
}

fn optional_index<'a>(of: Val<'a>, index: &Val<'_>) -> Val<'a> {
    let value = match &of {
        Val::Optional(None) => None,
        Val::Optional(Some(value)) => at(value, index),
        of => at(of, index),
    };
    Val::Optional(value.map(Rc::new))
}

fn binary<'a>(operator: Operator, a: &Val<'a>, b: &Val<'a>, budget: &mut Budget) -> Res<'a> {
    use std::cmp::Ordering as O;
    let compare = |name: &str, holds: fn(O) -> bool| match a.compare(b) {
        Some(order) => Ok(Val::Bool(holds(order))),
        // Not-a-number compares with nothing.
        None if matches!((a, b), (Val::Double(_), _) | (_, Val::Double(_))) => Ok(Val::Bool(false)),
        None => Err(no_overload(name, &[a, b])),
    };
    match operator {
        Operator::Equal => Ok(Val::Bool(a.equals(b))),
        Operator::NotEqual => Ok(Val::Bool(!a.equals(b))),
        Operator::Less => compare("_<_", |order| order == O::Less),
        Operator::LessEqual => compare("_<=_", |order| order != O::Greater),
        Operator::Greater => compare("_>_", |order| order == O::Greater),
        Operator::GreaterEqual => compare("_>=_", |order| order != O::Less),
        Operator::In => {
            budget.charge(b.size().unwrap_or_default() as u64)?;
            contains(b, a)
        }
        _ => {
            let value = arithmetic::compute(operator, a, b)?;
            budget.charge(value.weight())?;
            Ok(value)
        }
    }
}

fn contains<'a>(container: &Val<'a>, value: &Val<'a>) -> Res<'a> {
    if let Some(mut items) = container.items() {
        return Ok(Val::Bool(items.any(|item| item.equals(value))));
    }
    if container.type_name() == "map" {
        return Ok(Val::Bool(container.key(value).is_some()));
    }
    Err(no_overload("@in", &[value, container]))
}
