//! Which settings count for a manifest.
//!
//! Each of strategy, feedback and condition rules is taken from the first setting that names the object and has it.

use aro_crds::work::v1::{
    ConditionRule, DeleteOption, DeletePropagationPolicy, FeedbackRule, ManifestConfigOption,
    ResourceIdentifier, ServerSideApplyConfig, UpdateStrategyType,
};

/// What is to be done with one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) strategy: UpdateStrategyType,
    pub(crate) apply: ServerSideApplyConfig,
    pub(crate) feedback: Vec<FeedbackRule>,
    pub(crate) rules: Vec<ConditionRule>,
}

/// The settings for an object.
pub(crate) fn choose(configs: &[ManifestConfigOption], object: &ResourceIdentifier) -> Choice {
    let fitting = || configs.iter().filter(|config| names(&config.resource_identifier, object));
    let strategy = fitting().find_map(|config| config.update_strategy.clone()).unwrap_or_default();
    let feedback = fitting().map(|config| &config.feedback_rules).find(|rules| !rules.is_empty());
    let rules = fitting().map(|config| &config.condition_rules).find(|rules| !rules.is_empty());
    Choice {
        strategy: strategy.kind,
        apply: strategy.server_side_apply.unwrap_or_default(),
        feedback: feedback.cloned().unwrap_or_default(),
        rules: rules.cloned().unwrap_or_default(),
    }
}

/// Whether a setting names an object: group and resource exactly, the names with `*` for anything.
fn names(pattern: &ResourceIdentifier, object: &ResourceIdentifier) -> bool {
    pattern.group == object.group
        && pattern.resource == object.resource
        && fits(&pattern.name, &object.name)
        && fits(&pattern.namespace, &object.namespace)
}

/// `*` stands for any text, also for none.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether an object goes with the work.
pub(crate) fn is_owned(option: Option<&DeleteOption>, object: &ResourceIdentifier) -> bool {
    let Some(option) = option else { return true };
    match option.propagation_policy {
        DeletePropagationPolicy::Foreground => true,
        DeletePropagationPolicy::Orphan => false,
        DeletePropagationPolicy::SelectivelyOrphan => {
            let rules = option.selectively_orphans.iter().flat_map(|orphans| &orphans.orphaning_rules);
            !rules.into_iter().any(|rule| rule == object)
        }
    }
}

#[cfg(test)]
mod tests {
    use aro_crds::work::v1::{SelectivelyOrphan, UpdateStrategy};

    use super::*;

    fn id(name: &str) -> ResourceIdentifier {
        ResourceIdentifier {
            group: "apps".to_owned(),
            resource: "deployments".to_owned(),
            name: name.to_owned(),
            namespace: "n".to_owned(),
        }
    }

    #[test]
    fn names_match_with_stars() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything", true),
            ("web-*", "web-1", true),
            ("web-*", "we", false),
            ("*-1", "web-1", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("ab*ba", "aba", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn each_setting_comes_from_the_first_that_has_it() {
        let rule = FeedbackRule::default();
        let config =
            |name: &str| ManifestConfigOption { resource_identifier: id(name), ..Default::default() };
        let configs = [
            ManifestConfigOption { feedback_rules: vec![rule.clone()], ..config("other") },
            ManifestConfigOption {
                update_strategy: Some(UpdateStrategy {
                    kind: UpdateStrategyType::CreateOnly,
                    ..Default::default()
                }),
                ..config("web*")
            },
            ManifestConfigOption {
                feedback_rules: vec![rule.clone(), rule.clone()],
                update_strategy: Some(UpdateStrategy {
                    kind: UpdateStrategyType::ReadOnly,
                    ..Default::default()
                }),
                ..config("web")
            },
        ];
        let choice = choose(&configs, &id("web"));
        assert_eq!((choice.strategy, choice.feedback.len()), (UpdateStrategyType::CreateOnly, 2));
        assert_eq!(choose(&configs, &id("db")), Choice::default());
        assert_eq!(Choice::default().strategy, UpdateStrategyType::Update);
        assert_eq!(Choice::default().apply.field_manager, "work-agent");
    }

    #[test]
    fn what_is_orphaned_is_not_owned() {
        let option = |policy, orphans: &[&str]| DeleteOption {
            propagation_policy: policy,
            selectively_orphans: Some(SelectivelyOrphan {
                orphaning_rules: orphans.iter().map(|name| id(name)).collect(),
            }),
            ttl_seconds_after_finished: None,
        };
        use DeletePropagationPolicy::{Foreground, Orphan, SelectivelyOrphan as Some_};
        for (option, expected) in [
            (None, true),
            (Some(option(Foreground, &["web"])), true),
            (Some(option(Orphan, &[])), false),
            (Some(option(Some_, &["web"])), false),
            (Some(option(Some_, &["other"])), true),
        ] {
            assert_eq!(is_owned(option.as_ref(), &id("web")), expected, "{option:?}");
        }
    }
}
