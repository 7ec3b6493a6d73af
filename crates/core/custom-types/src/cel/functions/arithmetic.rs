//! Arithmetic on numbers, times, strings and lists, and the math extension.

use std::rc::Rc;

use crate::cel::eval::{Res, no_overload};
use crate::cel::functions::{Run, fail, time, wrong};
use crate::cel::lower::Operator;
use crate::cel::value::Val;

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("math.greatest", false, 1..) => |args| extreme("math.greatest", args, std::cmp::Ordering::Greater),
        ("math.least", false, 1..) => |args| extreme("math.least", args, std::cmp::Ordering::Less),
        ("math.abs", false, 1) => |args| match args {
            [Val::Int(a)] => a.checked_abs().map_or_else(overflow, |a| Ok(Val::Int(a))),
            [Val::Double(a)] => Ok(Val::Double(a.abs())),
            [Val::Uint(a)] => Ok(Val::Uint(*a)),
            _ => wrong("math.abs", args),
        },
        ("math.ceil", false, 1) => |args| match args {
            [Val::Double(a)] => Ok(Val::Double(a.ceil())),
            _ => wrong("math.ceil", args),
        },
        ("math.floor", false, 1) => |args| match args {
            [Val::Double(a)] => Ok(Val::Double(a.floor())),
            _ => wrong("math.floor", args),
        },
        ("math.round", false, 1) => |args| match args {
            [Val::Double(a)] => Ok(Val::Double(a.round())),
            _ => wrong("math.round", args),
        },
        _ => return None,
    })
}

fn extreme<'a>(name: &str, args: &[Val<'a>], wanted: std::cmp::Ordering) -> Res<'a> {
    let values: Vec<Val<'a>> = match args {
        [only] if only.is_list() => only.items().into_iter().flatten().collect(),
        _ => args.to_vec(),
    };
    let mut values = values.into_iter();
    let Some(mut best) = values.next() else { return fail(format!("{name}() on an empty list")) };
    for value in values {
        match value.compare(&best) {
            Some(order) if order == wanted => best = value,
            Some(_) => {}
            None => return wrong(name, args),
        }
    }
    Ok(best)
}

fn overflow<'a>() -> Res<'a> {
    fail("integer overflow")
}

pub(crate) fn negate<'a>(value: &Val<'a>) -> Res<'a> {
    match value {
        Val::Int(a) => a.checked_neg().map_or_else(overflow, |a| Ok(Val::Int(a))),
        Val::Double(a) => Ok(Val::Double(-a)),
        Val::Duration(a) => a.checked_neg().map_or_else(overflow, |a| Ok(Val::Duration(a))),
        _ => Err(no_overload("-_", &[value])),
    }
}

pub(crate) fn compute<'a>(operator: Operator, a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => ints(operator, *a, *b),
        (Val::Uint(a), Val::Uint(b)) => uints(operator, *a, *b),
        (Val::Double(x), Val::Double(y)) => match operator {
            Operator::Add => Ok(Val::Double(x + y)),
            Operator::Subtract => Ok(Val::Double(x - y)),
            Operator::Multiply => Ok(Val::Double(x * y)),
            Operator::Divide => Ok(Val::Double(x / y)),
            _ => Err(no_overload("_%_", &[a, b])),
        },
        (Val::Str(a), Val::Str(b)) if operator == Operator::Add => {
            Ok(Val::string([a.as_ref(), b.as_ref()].concat()))
        }
        (Val::Bytes(a), Val::Bytes(b)) if operator == Operator::Add => {
            Ok(Val::Bytes(Rc::new([a.as_slice(), b.as_slice()].concat())))
        }
        _ if operator == Operator::Add && a.is_list() && b.is_list() => {
            Ok(Val::list(a.items().into_iter().chain(b.items()).flatten().collect()))
        }
        _ => time::compute(operator, a, b),
    }
}

fn ints<'a>(operator: Operator, a: i64, b: i64) -> Res<'a> {
    let value = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide if b == 0 => return fail("division by zero"),
        Operator::Divide => a.checked_div(b),
        _ if b == 0 => return fail("modulus by zero"),
        _ => a.checked_rem(b),
    };
    value.map_or_else(overflow, |value| Ok(Val::Int(value)))
}

fn uints<'a>(operator: Operator, a: u64, b: u64) -> Res<'a> {
    let value = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide if b == 0 => return fail("division by zero"),
        Operator::Divide => a.checked_div(b),
        _ if b == 0 => return fail("modulus by zero"),
        _ => a.checked_rem(b),
    };
    value.map_or_else(|| fail("unsigned integer overflow"), |value| Ok(Val::Uint(value)))
}
