//! Attributes: the dotted names of a search, found in the type's table.

use aro_base::Timestamp;
use aro_ocm::Time;
use aro_ocm::search::Value;
use aro_ocm::shape::shortened;
use aro_ocm::wire::Shape;
use aro_store::{Literal, Path};
use jiff::civil;
use jiff::tz::TimeZone;

use super::Table;

/// What an attribute compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Text,
    Number,
    Bool,
    Time,
}

/// An attribute of a table.
#[derive(Debug)]
pub(super) struct Attribute {
    name: String,
    pub(super) path: Path,
    sort: Sort,
}

impl Attribute {
    /// Finds an attribute by its segments.
    pub(super) fn find(table: Table, segments: &[String]) -> Result<Self, String> {
        let name = segments.join(".");
        let unknown = || format!("'{}' is not an attribute that can be searched", shortened(&name));
        if segments.first().is_some_and(|first| table.hidden().contains(&first.as_str())) {
            return Err(unknown());
        }
        let mut names: Vec<String> = table.member().map(str::to_owned).into_iter().collect();
        let mut shape = table.shape();
        let mut rest = segments;
        loop {
            match (shape, rest) {
                (Shape::Object(object), [first, after @ ..]) => {
                    let lower = first.to_ascii_lowercase();
                    let member = object.members.iter().find(|member| member.name() == lower);
                    let member = member.ok_or_else(unknown)?;
                    names.push(member.name().to_owned());
                    (shape, rest) = (member.shape, after);
                }
                // The keys of a map of texts may have dots themselves.
                (Shape::Map(inner), [_, ..]) if !matches!(inner, Shape::Object(_)) => {
                    names.push(rest.join("."));
                    (shape, rest) = (inner, &[]);
                }
                (Shape::Map(inner), [first, after @ ..]) => {
                    names.push(first.clone());
                    (shape, rest) = (inner, after);
                }
                (_, []) => break,
                _ => return Err(unknown()),
            }
        }
        let sort = match shape {
            Shape::Text | Shape::Word(_) => Sort::Text,
            Shape::Integer | Shape::Number => Sort::Number,
            Shape::Bool => Sort::Bool,
            Shape::Date => Sort::Time,
            Shape::Object(_) | Shape::List(_) | Shape::Map(_) | Shape::Any => return Err(unknown()),
        };
        let path = Path::new(names).map_err(|_| unknown())?;
        Ok(Self { name, path, sort })
    }

    /// A written value as this attribute compares with it.
    pub(super) fn literal(&self, value: &Value) -> Result<Literal, String> {
        let text = value.as_str();
        let refused = |what: &str| {
            Err(format!("'{}' is compared with {what}, not with '{}'", self.name, shortened(text)))
        };
        match self.sort {
            Sort::Text => Ok(Literal::Text(text.to_owned())),
            Sort::Number => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Literal::Number(number)),
                _ => refused("a number"),
            },
            Sort::Bool => match text.trim().to_ascii_lowercase().as_str() {
                "t" | "true" | "1" | "yes" | "on" => Ok(Literal::Bool(true)),
                "f" | "false" | "0" | "no" | "off" => Ok(Literal::Bool(false)),
                _ => refused("true or false"),
            },
            Sort::Time => match time(text.trim()) {
                Some(time) => Ok(Literal::Text(Time(time).to_string())),
                None => refused("a time such as 2026-01-31T12:00:00Z"),
            },
        }
    }

    /// Whether it can match a pattern.
    pub(super) fn check_pattern(&self) -> Result<(), String> {
        match self.sort {
            Sort::Text => Ok(()),
            _ => Err(format!("'{}' is not a text that can match a pattern", self.name)),
        }
    }
}

/// A time with its zone, or a time or date without one, which is UTC.
fn time(text: &str) -> Option<Timestamp> {
    let zoned = || text.parse::<Timestamp>().ok();
    let plain =
        || text.parse::<civil::DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    zoned().or_else(plain)
}
