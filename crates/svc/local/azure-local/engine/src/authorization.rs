//! Who may do what: role definitions, role assignments and the decision. Pure but for the index that holds them.
//!
//! A principal may perform an action at a scope if an assignment at that scope or above it names a role whose actions
//! match and whose exclusions do not. Actions match by `*` without regard to case, as Azure's do.

mod roles;

use std::collections::HashMap;

use aro_base::Timestamp;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use roles::{BUILT_IN, BuiltInRole, find_built_in};

/// What a role allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Permission {
    pub actions: Vec<String>,
    pub not_actions: Vec<String>,
    pub data_actions: Vec<String>,
    pub not_data_actions: Vec<String>,
}

impl Permission {
    fn allows(&self, action: &str, data: bool) -> bool {
        let (granted, excluded) = match data {
            true => (&self.data_actions, &self.not_data_actions),
            false => (&self.actions, &self.not_actions),
        };
        granted.iter().any(|pattern| matches(pattern, action))
            && !excluded.iter().any(|pattern| matches(pattern, action))
    }
}

/// Whether a pattern with `*` matches an action. Linear in the length of both: the last `*` is the only place to return to.
pub fn matches(pattern: &str, action: &str) -> bool {
    let (pattern, action) = (pattern.as_bytes(), action.as_bytes());
    let (mut p, mut a) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while a < action.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, a));
                p += 1;
            }
            Some(c) if action.get(a).is_some_and(|other| c.eq_ignore_ascii_case(other)) => {
                p += 1;
                a += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    a = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|c| *c == b'*'))
}

/// An assignment as the decision needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Its resource id in lower case.
    pub id: String,
    /// In lower case, without a slash at the end; empty is the whole tenant.
    pub scope: String,
    /// The GUID of the role, in lower case.
    pub role: String,
    pub principal: String,
    /// From when it counts; later than its creation while a fault delays assignments.
    pub effective: Timestamp,
}

/// Roles and assignments in memory.
#[derive(Debug, Default)]
pub struct Grants(RwLock<Index>);

#[derive(Debug, Default)]
struct Index {
    /// By principal, in lower case.
    assignments: HashMap<String, Vec<Assignment>>,
    /// Custom roles by GUID.
    custom: HashMap<String, Vec<Permission>>,
}

/// The decision on one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allowed(Assignment),
    NotAllowed,
}

impl Grants {
    pub fn assign(&self, assignment: Assignment) {
        let mut index = self.0.write();
        let of_principal = index.assignments.entry(assignment.principal.to_lowercase()).or_default();
        of_principal.retain(|known| known.id != assignment.id);
        of_principal.push(assignment);
    }

    pub fn unassign(&self, principal: &str, id: &str) {
        let mut index = self.0.write();
        if let Some(of_principal) = index.assignments.get_mut(&principal.to_lowercase()) {
            of_principal.retain(|known| known.id != id);
        }
    }

    pub fn define(&self, role: &str, permissions: Vec<Permission>) {
        self.0.write().custom.insert(role.to_lowercase(), permissions);
    }

    pub fn undefine(&self, role: &str) {
        self.0.write().custom.remove(&role.to_lowercase());
    }

    /// Whether a role exists.
    pub fn is_role(&self, role: &str) -> bool {
        find_built_in(role).is_some() || self.0.read().custom.contains_key(&role.to_lowercase())
    }

    /// Whether another assignment grants the same.
    pub fn exists(&self, assignment: &Assignment) -> bool {
        let index = self.0.read();
        index.assignments.get(&assignment.principal.to_lowercase()).is_some_and(|known| {
            known.iter().any(|known| {
                known.scope == assignment.scope && known.role == assignment.role && known.id != assignment.id
            })
        })
    }

    /// Whether a role is in use.
    pub fn is_assigned(&self, role: &str) -> bool {
        self.0.read().assignments.values().flatten().any(|known| known.role.eq_ignore_ascii_case(role))
    }

    /// Decides about one action of a principal at a scope.
    pub fn decide(&self, principal: &str, scope: &str, action: &str, data: bool, now: Timestamp) -> Decision {
        let scope = scope.trim_end_matches('/').to_lowercase();
        let index = self.0.read();
        let assignments = index.assignments.get(&principal.to_lowercase());
        let granting = assignments.into_iter().flatten().find(|assignment| {
            assignment.effective <= now
                && is_at_or_above(&assignment.scope, &scope)
                && index.allows(&assignment.role, action, data)
        });
        granting.cloned().map_or(Decision::NotAllowed, Decision::Allowed)
    }

    /// Whether a principal has any assignment at, above or below a scope: it then sees that the scope exists.
    pub fn sees(&self, principal: &str, scope: &str) -> bool {
        let scope = scope.trim_end_matches('/').to_lowercase();
        let index = self.0.read();
        let mut assignments = index.assignments.get(&principal.to_lowercase()).into_iter().flatten();
        assignments.any(|known| is_at_or_above(&known.scope, &scope) || is_at_or_above(&scope, &known.scope))
    }

    /// The permissions of a principal at a scope, as the wire has them.
    pub fn permissions(&self, principal: &str, scope: &str, now: Timestamp) -> Vec<Value> {
        let scope = scope.trim_end_matches('/').to_lowercase();
        let index = self.0.read();
        let assignments = index.assignments.get(&principal.to_lowercase()).into_iter().flatten();
        let here = assignments.filter(|known| known.effective <= now && is_at_or_above(&known.scope, &scope));
        here.flat_map(|known| index.permissions(&known.role)).map(|permission| json!(permission)).collect()
    }
}

impl Index {
    fn allows(&self, role: &str, action: &str, data: bool) -> bool {
        match find_built_in(role) {
            Some(built_in) => built_in.allows(action, data),
            None => self.custom.get(role).is_some_and(|all| all.iter().any(|one| one.allows(action, data))),
        }
    }

    fn permissions(&self, role: &str) -> Vec<Permission> {
        match find_built_in(role) {
            Some(built_in) => vec![built_in.permission()],
            None => self.custom.get(role).cloned().unwrap_or_default(),
        }
    }
}

/// Whether a scope contains another one. Both in lower case, without a slash at the end.
fn is_at_or_above(above: &str, scope: &str) -> bool {
    scope.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";
    const READER: &str = "acdd72a7-3385-48ef-bd42-f606fba81ae7";

    fn grant(grants: &Grants, id: &str, scope: &str, role: &str, effective: Timestamp) {
        let (id, scope, role) = (id.to_owned(), scope.to_owned(), role.to_owned());
        grants.assign(Assignment { id, scope, role, principal: "P".to_owned(), effective });
    }

    fn allowed(grants: &Grants, scope: &str, action: &str) -> bool {
        matches!(grants.decide("p", scope, action, false, Timestamp::UNIX_EPOCH), Decision::Allowed(_))
    }

    #[test]
    fn patterns_match_as_azure_matches_actions() {
        for (pattern, action, expected) in [
            ("*", "Microsoft.Network/virtualNetworks/read", true),
            ("*/read", "microsoft.network/virtualnetworks/READ", true),
            ("*/read", "Microsoft.Network/virtualNetworks/write", false),
            ("Microsoft.Network/*", "Microsoft.Network/x/y/action", true),
            (
                "Microsoft.Network/*/join/action",
                "Microsoft.Network/virtualNetworks/subnets/join/action",
                true,
            ),
            ("Microsoft.Authorization/*/Write", "Microsoft.Authorization/roleAssignments/write", true),
            ("a*b*c", "aXXbYYbZc", true),
            ("a*b*c", "aXXbYY", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, action), expected, "{pattern} {action}");
        }
    }

    #[test]
    fn an_assignment_counts_at_its_scope_and_below_and_nowhere_else() {
        let grants = Grants::default();
        grant(&grants, "a", "/subscriptions/s/resourcegroups/g", READER, Timestamp::UNIX_EPOCH);
        let read = "Microsoft.Network/virtualNetworks/read";
        assert!(allowed(
            &grants,
            "/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/virtualNetworks/v",
            read
        ));
        assert!(!allowed(&grants, "/subscriptions/s/resourceGroups/g2", read));
        assert!(!allowed(&grants, "/subscriptions/s", read));
        assert!(!allowed(
            &grants,
            "/subscriptions/s/resourceGroups/g",
            "Microsoft.Network/virtualNetworks/write"
        ));
        grants.unassign("P", "a");
        assert!(!allowed(&grants, "/subscriptions/s/resourceGroups/g", read));
    }

    #[test]
    fn a_contributor_cannot_grant_roles() {
        let grants = Grants::default();
        grant(&grants, "a", "/subscriptions/s", CONTRIBUTOR, Timestamp::UNIX_EPOCH);
        assert!(allowed(&grants, "/subscriptions/s", "Microsoft.Network/virtualNetworks/delete"));
        assert!(!allowed(&grants, "/subscriptions/s", "Microsoft.Authorization/roleAssignments/write"));
        assert!(allowed(&grants, "/subscriptions/s", "Microsoft.Authorization/roleAssignments/read"));
    }

    #[test]
    fn an_assignment_that_is_late_does_not_count_yet() {
        let grants = Grants::default();
        let later = Timestamp::from_second(10).unwrap();
        grant(&grants, "a", "/subscriptions/s", READER, later);
        assert!(!allowed(&grants, "/subscriptions/s", "a/read"));
        assert!(matches!(
            grants.decide("P", "/subscriptions/s", "a/read", false, later),
            Decision::Allowed(_)
        ));
    }

    #[test]
    fn custom_roles_have_exclusions_and_data_actions() {
        let grants = Grants::default();
        let permission = Permission {
            actions: vec!["A/*".to_owned()],
            not_actions: vec!["A/b/*".to_owned()],
            data_actions: vec!["D/read".to_owned()],
            not_data_actions: Vec::new(),
        };
        grants.define("R", vec![permission]);
        grant(&grants, "a", "/subscriptions/s", "r", Timestamp::UNIX_EPOCH);
        assert!(
            allowed(&grants, "/subscriptions/s", "A/c/read")
                && !allowed(&grants, "/subscriptions/s", "A/b/read")
        );
        assert!(!allowed(&grants, "/subscriptions/s", "D/read"));
        assert!(matches!(
            grants.decide("p", "/subscriptions/s", "d/READ", true, Timestamp::UNIX_EPOCH),
            Decision::Allowed(_)
        ));
        grants.undefine("r");
        assert!(!allowed(&grants, "/subscriptions/s", "A/c/read"));
    }

    #[test]
    fn built_in_roles_have_guids_of_their_own() {
        let mut ids: Vec<&str> = BUILT_IN.iter().map(|role| role.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), BUILT_IN.len());
        assert!(BUILT_IN.iter().all(|role| uuid::Uuid::try_parse(role.id).is_ok()));
    }
}
