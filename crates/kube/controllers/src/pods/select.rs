//! Label selectors of specs, in a form that can be asked.

use std::collections::BTreeMap;

use aro_kube_apimachinery::selector::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;

/// The labels an object carries.
pub type Labels = BTreeMap<String, String>;

/// A selector that can be asked; an empty one selects everything. `None`: it makes no sense.
pub fn selector(of: &v1::LabelSelector) -> Option<LabelSelector> {
    LabelSelector::from_object(&serde_json::to_value(of).ok()?).ok()
}

/// The same where an empty selector selects nothing, as with everything that owns what it selects.
pub fn owning_selector(of: &v1::LabelSelector) -> Option<LabelSelector> {
    selector(of).filter(|selector| !selector.is_empty())
}

/// Whether labels are what a selector asks for.
pub fn selects(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    selector.matches(|name| labels?.get(name).map(String::as_str))
}

/// Whether all of `wanted` are among `labels`.
pub fn has_all(labels: Option<&Labels>, wanted: Option<&Labels>) -> bool {
    wanted
        .into_iter()
        .flatten()
        .all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn labels_and_expressions_are_asked_together() {
        let of = json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]});
        let selector = selector(&serde_json::from_value(of).unwrap()).unwrap();
        assert!(selects(&selector, Some(&labels(&[("app", "web"), ("tier", "x")]))));
        assert!(!selects(&selector, Some(&labels(&[("app", "web")]))));
        assert!(!selects(&selector, None));
    }

    #[test]
    fn an_empty_selector_owns_nothing() {
        assert!(owning_selector(&v1::LabelSelector::default()).is_none());
        assert!(selector(&v1::LabelSelector::default()).is_some_and(|all| selects(&all, None)));
    }

    #[test]
    fn more_labels_than_wanted_are_fine() {
        let wanted = labels(&[("a", "1")]);
        assert!(has_all(Some(&labels(&[("a", "1"), ("b", "2")])), Some(&wanted)));
        assert!(!has_all(Some(&labels(&[("a", "2")])), Some(&wanted)));
        assert!(has_all(None, None));
    }
}
