//! The order of lists: `column [asc|desc]`, separated by commas.

use aro_store::Order;

use super::columns::{Kind, Table};
use crate::fault::{Code, Fault};

/// The sort keys of one list.
const MAX_KEYS: usize = 8;

/// Parses an order; an empty string is none.
pub fn order(table: Table, text: &str) -> Result<Vec<Order>, Fault> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<&str> = text.split(',').collect();
    if keys.len() > MAX_KEYS {
        let reason = format!("bad order value '{text}': more than {MAX_KEYS} fields");
        return Err(Fault::new(Code::BadRequest, reason));
    }
    keys.into_iter().map(|key| one(table, key.trim())).collect()
}

fn one(table: Table, text: &str) -> Result<Order, Fault> {
    let refused = |why: &str| Fault::new(Code::BadRequest, format!("bad order value '{text}': {why}"));
    let mut words = text.split_whitespace();
    let (Some(name), direction, None) = (words.next(), words.next(), words.next()) else {
        return Err(refused("a field and perhaps asc or desc are expected"));
    };
    let descending = match direction {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(_) => return Err(refused("the direction is asc or desc")),
    };
    let column = table.column(name).map_err(|_| refused("there is no such field"))?;
    if column.kind == Kind::Json {
        return Err(refused("this field has no order"));
    }
    Ok(Order { path: column.path(), descending })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_of_the_table_sort() {
        let read = |text: &str| order(Table::Bundles, text);
        let keys = read("created_at desc, resources.version asc,name").unwrap();
        let told: Vec<_> = keys.iter().map(|key| (key.path.names()[0].as_str(), key.descending)).collect();
        assert_eq!(told, [("created_at", true), ("version", false), ("name", false)]);
        assert!(read("").unwrap().is_empty());
        for bad in
            ["id up", "id DESC", "nothing", "payload", "id,,name", "a.b.c", "id; drop table x", "(select 1)"]
        {
            assert_eq!(read(bad).unwrap_err().code, Code::BadRequest, "{bad}");
        }
        assert!(order(Table::Consumers, "version").is_err());
    }
}
