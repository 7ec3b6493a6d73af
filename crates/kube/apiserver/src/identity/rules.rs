//! Rules of roles: what they allow, and whether some rules cover others. Pure.

use serde::Deserialize;

use super::authorize::Attributes;

/// One rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    pub paths: Vec<String>,
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|known| known == "*" || known == wanted)
}

fn resource_matches(known: &str, resource: &str, subresource: &str) -> bool {
    if known == "*" {
        return true;
    }
    match known.split_once('/') {
        None => subresource.is_empty() && known == resource,
        Some(("*", sub)) => !subresource.is_empty() && sub == subresource,
        Some((name, sub)) => name == resource && sub == subresource,
    }
}

fn path_matches(known: &str, path: &str) -> bool {
    match known.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => known == path,
    }
}

impl Rule {
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, asked.verb) {
            return false;
        }
        if !asked.path.is_empty() {
            return self.paths.iter().any(|known| path_matches(known, asked.path));
        }
        has(&self.api_groups, asked.group)
            && self.resources.iter().any(|known| resource_matches(known, asked.resource, asked.subresource))
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|known| known == asked.name))
    }

    /// The rule in pieces that allow one thing each.
    fn pieces(&self) -> Vec<Piece<'_>> {
        let mut pieces = Vec::new();
        for verb in &self.verbs {
            for path in &self.paths {
                pieces.push(Piece::Path { verb, path });
            }
            for group in &self.api_groups {
                for resource in &self.resources {
                    if self.resource_names.is_empty() {
                        pieces.push(Piece::Resource { verb, group, resource, name: None });
                    }
                    for name in &self.resource_names {
                        pieces.push(Piece::Resource { verb, group, resource, name: Some(name) });
                    }
                }
            }
        }
        pieces
    }

    fn covers(&self, piece: &Piece<'_>) -> bool {
        match *piece {
            Piece::Path { verb, path } => {
                has(&self.verbs, verb)
                    && self
                        .paths
                        .iter()
                        .any(|known| known == path || (known.ends_with('*') && path_matches(known, path)))
            }
            Piece::Resource { verb, group, resource, name } => {
                let covers_resource = |known: &String| {
                    known == "*"
                        || known == resource
                        || known
                            .strip_prefix("*/")
                            .is_some_and(|sub| resource.split_once('/').is_some_and(|(_, own)| own == sub))
                };
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(covers_resource)
                    && match name {
                        None => self.resource_names.is_empty(),
                        Some(name) => {
                            self.resource_names.is_empty()
                                || self.resource_names.iter().any(|known| known == name)
                        }
                    }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Path { verb: &'a str, path: &'a str },
    Resource { verb: &'a str, group: &'a str, resource: &'a str, name: Option<&'a str> },
}

impl Piece<'_> {
    /// As upstream shows a rule.
    fn show(&self) -> String {
        match self {
            Self::Path { verb, path } => format!("{{NonResourceURLs:[{path:?}], Verbs:[{verb:?}]}}"),
            Self::Resource { verb, group, resource, name } => {
                let names = name.map(|name| format!(", ResourceNames:[{name:?}]")).unwrap_or_default();
                format!("{{APIGroups:[{group:?}], Resources:[{resource:?}]{names}, Verbs:[{verb:?}]}}")
            }
        }
    }
}

/// What of `wanted` is in no rule of `held`, as upstream shows it; pieces that differ in their verb only are one line.
pub fn not_held(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let mut missing: Vec<(String, Vec<&str>)> = Vec::new();
    for rule in wanted {
        for piece in rule.pieces() {
            if held.iter().any(|held| held.covers(&piece)) {
                continue;
            }
            let (verb, blank) = match piece {
                Piece::Path { verb, path } => (verb, Piece::Path { verb: "\0", path }.show()),
                Piece::Resource { verb, group, resource, name } => {
                    (verb, Piece::Resource { verb: "\0", group, resource, name }.show())
                }
            };
            match missing.iter_mut().find(|(known, _)| *known == blank) {
                Some((_, verbs)) if !verbs.contains(&verb) => verbs.push(verb),
                Some(_) => {}
                None => missing.push((blank, vec![verb])),
            }
        }
    }
    let mut lines: Vec<String> = missing
        .into_iter()
        .map(|(blank, verbs)| {
            let verbs: Vec<String> = verbs.iter().map(|verb| format!("{verb:?}")).collect();
            blank.replace("\"\\0\"", &verbs.join(" "))
        })
        .collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Rule {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Rule {
            verbs: own(verbs),
            api_groups: own(groups),
            resources: own(resources),
            resource_names: own(names),
            paths: Vec::new(),
        }
    }

    fn ask<'a>(verb: &'a str, resource: &'a str, subresource: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes { verb, resource, subresource, name, ..Attributes::default() }
    }

    #[test]
    fn rules_allow_what_they_name() {
        let pods = rule(&["get", "list"], &[""], &["pods", "pods/log"], &[]);
        assert!(pods.allows(&ask("get", "pods", "", "a")));
        assert!(pods.allows(&ask("get", "pods", "log", "a")));
        assert!(!pods.allows(&ask("delete", "pods", "", "a")));
        assert!(!pods.allows(&ask("get", "pods", "status", "a")));
        let named = rule(&["*"], &["*"], &["secrets"], &["one"]);
        assert!(named.allows(&ask("get", "secrets", "", "one")));
        assert!(!named.allows(&ask("get", "secrets", "", "two")));
        assert!(!named.allows(&ask("list", "secrets", "", "")));
        assert!(rule(&["get"], &[""], &["*/scale"], &[]).allows(&ask("get", "deployments", "scale", "")));
    }

    #[test]
    fn paths_match_by_prefix_only_with_a_star() {
        let rule = Rule {
            verbs: vec!["get".into()],
            paths: vec!["/healthz".into(), "/api/*".into()],
            ..Rule::default()
        };
        let ask = |path| rule.allows(&Attributes { verb: "get", path, ..Attributes::default() });
        assert!(ask("/healthz") && ask("/api/v1"));
        assert!(!ask("/healthz/ping") && !ask("/apis"));
    }

    #[test]
    fn what_is_not_held_is_named() {
        let held = [rule(&["get"], &[""], &["pods"], &[])];
        assert!(not_held(&held, &held).is_empty());
        let wanted = [rule(&["get", "list", "watch"], &[""], &["pods"], &[])];
        assert_eq!(
            not_held(&held, &wanted),
            [r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#]
        );
        assert!(not_held(&[rule(&["*"], &["*"], &["*"], &[])], &wanted).is_empty());
    }
}
