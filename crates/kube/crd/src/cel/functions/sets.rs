//! Lists read as sets.

use crate::cel::functions::{Run, wrong};
use crate::cel::value::Val;

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("sets.contains", false, 2) => |args| match args {
            [a, b] if a.is_list() && b.is_list() => Ok(Val::Bool(contains(a, b))),
            _ => wrong("sets.contains", args),
        },
        ("sets.equivalent", false, 2) => |args| match args {
            [a, b] if a.is_list() && b.is_list() => Ok(Val::Bool(contains(a, b) && contains(b, a))),
            _ => wrong("sets.equivalent", args),
        },
        ("sets.intersects", false, 2) => |args| match args {
            [a, b] if a.is_list() && b.is_list() => {
                let theirs: Vec<_> = b.items().into_iter().flatten().collect();
                let mut mine = a.items().into_iter().flatten();
                Ok(Val::Bool(mine.any(|item| theirs.iter().any(|their| item.equals(their)))))
            }
            _ => wrong("sets.intersects", args),
        },
        _ => return None,
    })
}

fn contains(list: &Val<'_>, wanted: &Val<'_>) -> bool {
    let mine: Vec<_> = list.items().into_iter().flatten().collect();
    wanted.items().into_iter().flatten().all(|item| mine.iter().any(|my| my.equals(&item)))
}
