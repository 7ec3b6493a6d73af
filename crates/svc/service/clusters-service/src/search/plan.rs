//! Which index a search of clusters uses.

use aro_ocm::ClusterId;
use aro_store::{Condition, Expr, Literal, Relation};

use crate::records::{Attribute, CLUSTERS, clusters_prefix};

/// How the candidates of a search are found. Each is checked against the whole condition afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// One cluster by its id.
    Id(ClusterId),
    /// No cluster can meet the condition.
    Nothing,
    /// Clusters whose resource id begins so: all, or those of a subscription, a resource group, a name.
    Prefix(String),
    /// Clusters whose attribute document's resource id begins so; the other prefix if there are too many.
    Attribute(String, String),
}

/// The plan for a condition on clusters.
pub fn plan(condition: Option<&Condition>) -> Plan {
    let find = |dotted: &str| condition.and_then(|condition| equal_to(condition.expr(), dotted));
    if let Some(id) = find("id") {
        return ClusterId::parse(id).map_or(Plan::Nothing, Plan::Id);
    }
    let subscription = find("azure.subscription_id").filter(|text| !text.is_empty());
    let group = find("azure.resource_group_name").filter(|text| !text.is_empty());
    let name = find("azure.resource_name").filter(|text| !text.is_empty());
    let prefix = match subscription {
        Some(subscription) => clusters_prefix(subscription, group, name),
        None => CLUSTERS.to_owned(),
    };
    if subscription.is_some() && group.is_some() {
        return Plan::Prefix(prefix);
    }
    // The most selective first; a tenant may have many clusters, and so may a subscription.
    let attributes = [
        Attribute::Subnet,
        Attribute::NetworkSecurityGroup,
        Attribute::ManagedResourceGroup,
        Attribute::DomainPrefix,
        Attribute::Name,
        Attribute::Tenant,
    ];
    let attribute = attributes.into_iter().find_map(|attribute| {
        let value = find(attribute.field()).filter(|value| !value.is_empty())?;
        Some(attribute.prefix(value))
    });
    match attribute {
        Some(attribute) => Plan::Attribute(attribute, prefix),
        None => Plan::Prefix(prefix),
    }
}

/// The text that an attribute must be equal to for the condition to hold.
fn equal_to<'c>(expr: &'c Expr, dotted: &str) -> Option<&'c str> {
    match expr {
        Expr::And(parts) => parts.iter().find_map(|part| equal_to(part, dotted)),
        Expr::Compare(path, Relation::Eq, Literal::Text(text)) => {
            let (_, names) = path.names().split_first()?;
            names.iter().map(String::as_str).eq(dotted.split('.')).then_some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Table, condition};

    fn planned(text: &str) -> Plan {
        plan(condition(Table::Clusters, text).unwrap().as_ref())
    }

    #[test]
    fn searches_of_operators_use_an_index() {
        let prefix = |text: &str| Plan::Prefix(text.to_owned());
        let both = "azure.subscription_id = 's' and azure.resource_group_name = 'g'";
        assert_eq!(planned(both), prefix("/subscriptions/s/g/"));
        let adoption = format!("{both} and azure.resource_name = 'n' and azure.tenant_id = 't'");
        assert_eq!(planned(&adoption), prefix("/subscriptions/s/g/n/"));
        assert_eq!(planned("azure.subscription_id = 's'"), prefix("/subscriptions/s/"));
        assert_eq!(planned("id = 'abc' and name = 'x'"), Plan::Id(ClusterId::parse("abc").unwrap()));
        assert_eq!(planned("id = 'UPPER'"), Plan::Nothing);
        let by = |one: &str, other: &str| Plan::Attribute(one.to_owned(), other.to_owned());
        assert_eq!(planned("name = 'x'"), by("/by/name/x/", "/subscriptions/"));
        assert_eq!(
            planned("azure.subscription_id = 's' and azure.managed_resource_group_name = 'm'"),
            by("/by/azure.managed_resource_group_name/m/", "/subscriptions/s/")
        );
    }

    #[test]
    fn alternatives_and_negations_narrow_nothing() {
        for text in ["", "id = 'a' or id = 'b'", "not name = 'x'", "name != 'x'", "name like 'x%'"] {
            assert_eq!(planned(text), Plan::Prefix("/subscriptions/".to_owned()), "{text}");
        }
        let Plan::Prefix(prefix) =
            planned("azure.subscription_id = 's/x' and azure.resource_group_name = 'g'")
        else {
            panic!("a prefix");
        };
        assert_eq!(prefix, "/subscriptions/s|x/g/", "a value cannot reach into the next segment");
    }
}
