//! Searches, orders and field selections of lists.
//!
//! Every attribute of an object can be searched: the type's table says what an attribute is and what it compares with. The
//! search becomes a condition that the store evaluates with bound values; [`plan`] narrows it to what an index finds.

mod attribute;
mod fields;
pub mod plan;
mod run;
#[cfg(test)]
mod tests;

use aro_ocm::search::{OrderKey, Relation as Sign, Term, parse};
use aro_ocm::wire::{Described as _, Shape};
use aro_ocm::{
    BreakGlassCredential, Cluster, ExternalAuth, InflightCheck, NodePool, ProvisionShard, UpgradePolicy,
    Version,
};
use aro_ocm::{Code, Problem};
use aro_store::{Condition, Expr, Order, Relation};

use attribute::Attribute;
pub use fields::Fields;
pub use run::{Found, run, select};

/// What is searched, and where the object of the API is inside of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Clusters.
    Clusters,
    /// Node pools.
    NodePools,
    /// External auths.
    ExternalAuths,
    /// Upgrade policies.
    UpgradePolicies,
    /// Inflight checks.
    InflightChecks,
    /// Break-glass credentials.
    Credentials,
    /// Provision shards.
    Shards,
    /// Versions, which are not stored.
    Versions,
}

impl Table {
    fn shape(self) -> &'static Shape {
        match self {
            Self::Clusters => Cluster::SHAPE,
            Self::NodePools => NodePool::SHAPE,
            Self::ExternalAuths => ExternalAuth::SHAPE,
            Self::UpgradePolicies => UpgradePolicy::SHAPE,
            Self::InflightChecks => InflightCheck::SHAPE,
            Self::Credentials => BreakGlassCredential::SHAPE,
            Self::Shards => ProvisionShard::SHAPE,
            Self::Versions => Version::SHAPE,
        }
    }

    /// The member of the document that holds the object; `None` if the document is the object.
    fn member(self) -> Option<&'static str> {
        match self {
            Self::Clusters => Some("cluster"),
            Self::NodePools => Some("pool"),
            Self::ExternalAuths => Some("auth"),
            Self::UpgradePolicies => Some("policy"),
            Self::InflightChecks => Some("check"),
            Self::Credentials => Some("credential"),
            Self::Shards => Some("shard"),
            Self::Versions => None,
        }
    }

    /// Attributes that are computed for an answer, and secrets, which a search could probe.
    fn hidden(self) -> &'static [&'static str] {
        match self {
            Self::Clusters => &["aro", "href", "kind"],
            Self::Credentials => &["kubeconfig", "href", "kind"],
            _ => &["href", "kind"],
        }
    }
}

fn refused(text: &str, why: &str) -> Problem {
    let shown = aro_ocm::shape::shortened(text);
    Problem::new(Code::InvalidValue, "search", format!("Failed to parse search query '{shown}': {why}"))
}

/// Parses a search; `None` for a blank one.
pub fn condition(table: Table, text: &str) -> Result<Option<Condition>, Problem> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let expr = parse(text).and_then(|term| compile(table, term));
    let checked = expr.and_then(|expr| expr.check().map_err(|error| error.to_string()));
    checked.map(Some).map_err(|why| refused(text, &why))
}

/// Parses an order; none for a blank one.
pub fn order(table: Table, text: &str) -> Result<Vec<Order>, Problem> {
    let bad = |why: String| {
        let shown = aro_ocm::shape::shortened(text);
        Problem::new(Code::InvalidValue, "order", format!("Failed to parse order '{shown}': {why}"))
    };
    let key = |key: OrderKey| {
        let segments: Vec<String> = key.field.split('.').map(str::to_owned).collect();
        Ok(Order { path: Attribute::find(table, &segments)?.path, descending: key.descending })
    };
    let keys = aro_ocm::search::order(text).map_err(bad)?;
    keys.into_iter().map(key).collect::<Result<_, String>>().map_err(bad)
}

/// The depth of a term is limited by its parser.
fn compile(table: Table, term: Term) -> Result<Expr, String> {
    let all = |parts: Vec<Term>| parts.into_iter().map(|part| compile(table, part)).collect::<Result<_, _>>();
    Ok(match term {
        Term::And(parts) => Expr::And(all(parts)?),
        Term::Or(parts) => Expr::Or(all(parts)?),
        Term::Not(part) => compile(table, *part)?.negated(),
        Term::Compare(field, sign, value) => {
            let attribute = Attribute::find(table, field.segments())?;
            let literal = attribute.literal(&value)?;
            Expr::Compare(attribute.path, relation(sign), literal)
        }
        Term::Like { field, pattern, ignore_case } => {
            let attribute = Attribute::find(table, field.segments())?;
            attribute.check_pattern()?;
            Expr::Like { path: attribute.path, pattern: pattern.as_str().to_owned(), ignore_case }
        }
        Term::In(field, values) => {
            let attribute = Attribute::find(table, field.segments())?;
            let literals = values.iter().map(|value| attribute.literal(value)).collect::<Result<_, _>>()?;
            Expr::In(attribute.path, literals)
        }
        Term::Between(field, low, high) => {
            let attribute = Attribute::find(table, field.segments())?;
            let (low, high) = (attribute.literal(&low)?, attribute.literal(&high)?);
            Expr::Between(attribute.path, low, high)
        }
        Term::IsNull(field) => Expr::IsNull(Attribute::find(table, field.segments())?.path),
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
