//! Arithmetic on numbers, times, strings and lists.

use std::rc::Rc;

use crate::cel::eval::{Res, no_overload};
use crate::cel::functions::{fail, time};
use crate::cel::lower::Operator;
use crate::cel::value::Val;

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
