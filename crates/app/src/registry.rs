//! The roles of the program. A new role is one line here; command line, configuration, images, manifests, debug ports and
//! reference documents follow from its descriptor.

use aro_role::RoleDescriptor;

/// The roles that a program consists of, beside embedded Kubernetes, which hosts them.
#[derive(Debug, Clone, Copy)]
pub struct Registry(&'static [&'static RoleDescriptor]);

impl Registry {
    /// The roles of `aro`.
    pub const ARO: Self = Self(&[
        &aro_frontend::DESCRIPTOR,
        &aro_backend::DESCRIPTOR,
        &aro_clusters_service::DESCRIPTOR,
        &aro_broker::DESCRIPTOR,
        &aro_maestro::DESCRIPTOR,
        &aro_maestro_agent::DESCRIPTOR,
        &aro_mce::DESCRIPTOR,
        &aro_azure_local::DESCRIPTOR,
        &aro_dns::DESCRIPTOR,
        &aro_proxy::DESCRIPTOR,
        &aro_frontdoor::DESCRIPTOR,
    ]);

    /// A registry of other roles, for tests.
    pub const fn new(roles: &'static [&'static RoleDescriptor]) -> Self {
        Self(roles)
    }

    /// Every role, in the order of documents and tables.
    pub fn iter(self) -> impl Iterator<Item = &'static RoleDescriptor> {
        self.0.iter().copied()
    }

    /// The role of a name.
    pub fn find(self, name: &str) -> Option<&'static RoleDescriptor> {
        self.iter().find(|role| role.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use aro_role::RegionCluster;

    use super::*;

    #[test]
    fn names_commands_and_endpoints_are_unique() {
        let roles = || Registry::ARO.iter();
        let names: HashSet<&str> = roles().map(|role| role.name).collect();
        let commands: HashSet<String> = roles().map(RoleDescriptor::command_line).collect();
        assert_eq!((names.len(), commands.len()), (roles().count(), roles().count()));
        let endpoints: Vec<&str> =
            roles().flat_map(|role| role.listeners.iter().map(|listener| listener.endpoint)).collect();
        assert_eq!(endpoints.iter().collect::<HashSet<_>>().len(), endpoints.len(), "{endpoints:?}");
    }

    #[test]
    fn a_command_group_has_one_help_text() {
        for role in Registry::ARO.iter() {
            let group = |other: &RoleDescriptor| other.group.map(|group| group.name);
            for other in Registry::ARO.iter().filter(|other| group(other) == group(role)) {
                assert_eq!(other.group, role.group, "{} and {}", role.name, other.name);
            }
        }
    }

    #[test]
    fn every_role_runs_on_some_cluster_of_a_region_or_is_part_of_the_cloud_around_it() {
        let all = ["svc".to_owned(), "mgmt-1".to_owned()];
        for role in Registry::ARO.iter().filter(|role| role.beside.is_none()) {
            let on = |name: &String| (role.deployment)(&RegionCluster { name, all: &all }).is_some();
            assert!(all.iter().any(on), "{}", role.name);
        }
    }
}
