//! Kubernetes' list functions, and `join`, `flatten`, `slice`, `distinct`, `sort`, `reverse`, `first`, `last` and
//! `lists.range`.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::cel::eval::{Failure, Res};
use crate::cel::functions::{Run, arithmetic, fail, strings, wrong};
use crate::cel::lower::Operator;
use crate::cel::value::Val;

/// Members of a list that a function makes or compares pairwise, at most.
const MAX_MADE: usize = 1000;

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("isSorted", true, 0) => |args| {
            let items = items("isSorted", args)?;
            let sorted = items.windows(2).all(|pair| {
                matches!(pair, [a, b] if matches!(a.compare(b), Some(Ordering::Less | Ordering::Equal)))
            });
            Ok(Val::Bool(sorted))
        },
        ("sum", true, 0) => |args| {
            let mut items = items("sum", args)?.into_iter();
            let Some(first) = items.next() else { return Ok(Val::Int(0)) };
            items.try_fold(first, |sum, item| arithmetic::compute(Operator::Add, &sum, &item))
        },
        ("min", true, 0) => |args| extreme("min", args, Ordering::Less),
        ("max", true, 0) => |args| extreme("max", args, Ordering::Greater),
        ("indexOf", true, 1) => |args| match args {
            [list, wanted] if list.is_list() => {
                let at = list.items().into_iter().flatten().position(|item| item.equals(wanted));
                Ok(Val::Int(at.map_or(-1, |at| at as i64)))
            }
            _ => strings::index_of(args),
        },
        ("lastIndexOf", true, 1) => |args| match args {
            [list, wanted] if list.is_list() => {
                let at = items("lastIndexOf", &args[..1])?.iter().rposition(|item| item.equals(wanted));
                Ok(Val::Int(at.map_or(-1, |at| at as i64)))
            }
            _ => strings::last_index_of(args),
        },
        ("join", true, 0 | 1) => join,
        ("flatten", true, 0) => |args| {
            let mut flat = Vec::new();
            for item in items("flatten", args)? {
                match item.items() {
                    Some(inner) => flat.extend(inner),
                    None => flat.push(item),
                }
            }
            Ok(Val::list(flat))
        },
        ("distinct", true, 0) => |args| {
            let mut distinct: Vec<Val<'_>> = Vec::new();
            for item in items("distinct", args)? {
                if distinct.len() > MAX_MADE {
                    return Err(Failure::Exhausted);
                }
                if !distinct.iter().any(|known| known.equals(&item)) {
                    distinct.push(item);
                }
            }
            Ok(Val::list(distinct))
        },
        ("reverse", true, 0) => {
            |args| items("reverse", args).map(|items| Val::list(items.into_iter().rev().collect()))
        }
        ("first", true, 0) => |args| Ok(Val::Optional(items("first", args)?.into_iter().next().map(Rc::new))),
        ("last", true, 0) => |args| Ok(Val::Optional(items("last", args)?.pop().map(Rc::new))),
        ("lists.range", false, 1) => |args| match args {
            [Val::Int(count)] if usize::try_from(*count).is_ok_and(|count| count <= MAX_MADE) => {
                Ok(Val::list((0..*count).map(Val::Int).collect()))
            }
            [Val::Int(count)] if *count < 0 => Ok(Val::list(Vec::new())),
            [Val::Int(_)] => Err(Failure::Exhausted),
            _ => wrong("lists.range", args),
        },
        ("sort", true, 0) => |args| {
            let mut items = items("sort", args)?;
            items.sort_by(|a, b| a.compare(b).unwrap_or(Ordering::Equal));
            Ok(Val::list(items))
        },
        ("slice", true, 2) => |args| match args {
            [list, Val::Int(from), Val::Int(to)] if list.is_list() => {
                let items = items("slice", &args[..1])?;
                match (usize::try_from(*from), usize::try_from(*to)) {
                    (Ok(from), Ok(to)) if from <= to && to <= items.len() => {
                        Ok(Val::list(items[from..to].to_vec()))
                    }
                    _ => fail(format!("cannot slice({from}, {to}), list is length {}", items.len())),
                }
            }
            _ => wrong("slice", args),
        },
        _ => return None,
    })
}

fn items<'a>(name: &str, args: &[Val<'a>]) -> Result<Vec<Val<'a>>, Failure> {
    match args {
        [list] if list.is_list() => Ok(list.items().into_iter().flatten().collect()),
        _ => Err(wrong(name, args).err().unwrap_or(Failure::Exhausted)),
    }
}

fn extreme<'a>(name: &str, args: &[Val<'a>], wanted: Ordering) -> Res<'a> {
    let mut items = items(name, args)?.into_iter();
    let Some(mut best) = items.next() else { return fail(format!("{name} called on empty list")) };
    for item in items {
        match item.compare(&best) {
            Some(order) if order == wanted => best = item,
            Some(_) => {}
            None => return wrong(name, args),
        }
    }
    Ok(best)
}

fn join<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (list, separator) = match args {
        [list] => (list, ""),
        [list, Val::Str(separator)] => (list, separator.as_ref()),
        _ => return wrong("join", args),
    };
    let mut out = String::new();
    for (index, item) in list.items().into_iter().flatten().enumerate() {
        let Val::Str(item) = item else { return wrong("join", args) };
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(&item);
    }
    if list.is_list() { Ok(Val::string(out)) } else { wrong("join", args) }
}
