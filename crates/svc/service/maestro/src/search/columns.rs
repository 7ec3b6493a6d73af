//! The searchable columns, and the types they compare with.

use aro_base::Timestamp;
use aro_store::{Expr, Literal, Path, Relation};
use jiff::civil;
use jiff::tz::TimeZone;

use crate::rows::Moment;

/// The searched collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Bundles.
    Bundles,
    /// Consumers.
    Consumers,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Time,
    Json,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

const BUNDLES: &[Column] = &[
    column("id", Kind::Text),
    column("name", Kind::Text),
    column("source", Kind::Text),
    column("consumer_name", Kind::Text),
    column("version", Kind::Number),
    column("type", Kind::Text),
    column("created_at", Kind::Time),
    column("updated_at", Kind::Time),
    column("deleted_at", Kind::Time),
    column("payload", Kind::Json),
    column("status", Kind::Json),
];

const CONSUMERS: &[Column] = &[
    column("id", Kind::Text),
    column("name", Kind::Text),
    column("labels", Kind::Json),
    column("created_at", Kind::Time),
    column("updated_at", Kind::Time),
];

impl Table {
    /// The prefix that a search may put before a column.
    fn name(self) -> &'static str {
        match self {
            Self::Bundles => "resources",
            Self::Consumers => "consumers",
        }
    }

    /// Finds a column by its name, with or without the table's prefix.
    pub(super) fn column(self, written: &str) -> Result<Column, String> {
        let lower = written.to_ascii_lowercase();
        let name = lower.strip_prefix(self.name()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(&lower);
        let columns = match self {
            Self::Bundles => BUNDLES,
            Self::Consumers => CONSUMERS,
        };
        let found = columns.iter().find(|column| column.name == name);
        found.copied().ok_or_else(|| format!("`{written}` is not a field that can be searched"))
    }
}

impl Column {
    pub(super) fn path(self) -> Path {
        Path::member(self.name)
    }

    fn refused(self, value: &str) -> String {
        let what = match self.kind {
            Kind::Number => "a number",
            Kind::Time => "a time such as 2026-01-31T12:00:00Z",
            Kind::Text | Kind::Json => "a text",
        };
        format!("`{}` is compared with {what}, not with `{value}`", self.name)
    }

    /// The value of a string in a comparison with this column.
    pub(super) fn literal(self, value: &str) -> Result<Literal, String> {
        match self.kind {
            Kind::Text => Ok(Literal::Text(value.to_owned())),
            Kind::Number => match value.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Literal::Number(number)),
                _ => Err(self.refused(value)),
            },
            Kind::Time => {
                let time = time(value.trim()).ok_or_else(|| self.refused(value))?;
                Ok(Literal::Text(Moment(time).to_string()))
            }
            Kind::Json => Err(format!("`{}` is looked into with ->, it cannot be compared", self.name)),
        }
    }

    pub(super) fn compare(self, relation: Relation, value: &str) -> Result<Expr, String> {
        Ok(Expr::Compare(self.path(), relation, self.literal(value)?))
    }

    pub(super) fn like(self, pattern: &str, ignore_case: bool) -> Result<Expr, String> {
        if self.kind != Kind::Text {
            return Err(format!("`{}` is not a text that can match a pattern", self.name));
        }
        Ok(Expr::Like { path: self.path(), pattern: pattern.to_owned(), ignore_case })
    }

    pub(super) fn one_of(self, values: &[String]) -> Result<Expr, String> {
        let literals = values.iter().map(|value| self.literal(value)).collect::<Result<_, _>>()?;
        Ok(Expr::In(self.path(), literals))
    }
}

/// A time with its zone, or a time or date without one, which is UTC.
fn time(text: &str) -> Option<Timestamp> {
    let zoned = || text.parse::<Timestamp>().ok();
    let plain =
        || text.parse::<civil::DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    zoned().or_else(plain)
}
