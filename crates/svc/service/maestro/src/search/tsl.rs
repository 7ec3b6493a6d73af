//! The older grammar: `column operator literal`, joined by `and`, `or`, `not` and parentheses. Clusters Service has the same
//! one, so it is read by [`aro_ocm::search`]; here its names become columns.

use aro_ocm::search::{Relation as Sign, Term, Value, parse};
use aro_store::{Expr, Relation};

use super::columns::Table;

pub(super) fn read(table: Table, text: &str) -> Result<Expr, String> {
    compile(table, parse(text)?)
}

/// The depth of a term is limited by its parser.
fn compile(table: Table, term: Term) -> Result<Expr, String> {
    let all = |parts: Vec<Term>| parts.into_iter().map(|part| compile(table, part)).collect::<Result<_, _>>();
    Ok(match term {
        Term::And(parts) => Expr::And(all(parts)?),
        Term::Or(parts) => Expr::Or(all(parts)?),
        Term::Not(part) => compile(table, *part)?.negated(),
        Term::Compare(field, sign, value) => {
            table.column(&field.dotted())?.compare(relation(sign), value.as_str())?
        }
        Term::Like { field, pattern, ignore_case } => {
            table.column(&field.dotted())?.like(pattern.as_str(), ignore_case)?
        }
        Term::In(field, values) => {
            let values: Vec<String> = values.iter().map(|value| value.as_str().to_owned()).collect();
            table.column(&field.dotted())?.one_of(&values)?
        }
        Term::Between(field, low, high) => {
            let column = table.column(&field.dotted())?;
            let literal = |value: &Value| column.literal(value.as_str());
            Expr::Between(column.path(), literal(&low)?, literal(&high)?)
        }
        Term::IsNull(field) => Expr::IsNull(table.column(&field.dotted())?.path()),
    })
}

fn relation(sign: Sign) -> Relation {
    match sign {
        Sign::Eq => Relation::Eq,
        Sign::Ne => Relation::Ne,
        Sign::Lt => Relation::Lt,
        Sign::Le => Relation::Le,
        Sign::Gt => Relation::Gt,
        Sign::Ge => Relation::Ge,
    }
}
