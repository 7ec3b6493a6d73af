//! The descriptor itself.

use std::net::SocketAddr;

use aro_runtime::config::{Loaded, Schema};
use aro_runtime::{BuildError, ConfigProblems};

use crate::context::RoleContext;
use crate::deployment::{RegionCluster, RoleDeployment};

/// One role, described.
#[derive(Debug)]
pub struct RoleDescriptor {
    /// The role's name: its image, its scope, its entry in logs.
    pub name: &'static str,
    /// What it is, one sentence; the help text of its subcommand.
    pub about: &'static str,
    /// The subcommand that runs it alone.
    pub command: &'static str,
    /// The command that the subcommand belongs to, if it is not a top-level one.
    pub group: Option<CommandGroup>,
    /// Adds its configuration section to the schema.
    pub section: fn(Schema) -> Schema,
    /// What it listens on.
    pub listeners: &'static [ListenerDescriptor],
    /// Which parts outside of it it needs.
    pub needs: &'static [Need],
    /// Its Deployment on a cluster of the region; `None` where it does not run.
    pub deployment: fn(&RegionCluster<'_>) -> Option<RoleDeployment>,
    /// How a region runs it when it is no Deployment but a part of the cloud around the clusters; `None` where it is not.
    pub beside: Option<Beside>,
    /// Builds and launches it.
    pub start: fn(RoleContext) -> Result<(), BuildError>,
}

impl RoleDescriptor {
    /// The role's image, without a tag.
    pub fn image(&self) -> String {
        format!("{}{}", crate::REPOSITORY, self.name)
    }

    /// How it is called on the command line, after the program's name.
    pub fn command_line(&self) -> String {
        match self.group {
            Some(group) => format!("{} {}", group.name, self.command),
            None => self.command.to_owned(),
        }
    }

    /// Whether it needs a part.
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }
}

/// A command with the subcommands of several roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandGroup {
    /// Its name.
    pub name: &'static str,
    /// Its help text.
    pub about: &'static str,
}

/// A role that a region starts directly, beside its clusters.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// Configuration keys that the region sets for it.
    pub settings: &'static [(&'static str, RegionSetting)],
}

/// A value that a region sets.
#[derive(Debug, Clone, Copy)]
pub enum RegionSetting {
    /// The address of an endpoint of the region.
    AddressOf(&'static str),
    /// The same in every region.
    Text(&'static str),
    /// The path of a file in the directory of the local cloud.
    CloudFile(&'static str),
    /// A name of the region's layout in the cloud.
    Layout(LayoutSetting),
}

/// A name of the region's layout in the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutSetting {
    /// The subscriptions of the service, as a list of `name=GUID`.
    ServiceSubscriptions,
    /// The URL of the website with the OIDC documents of hosted clusters.
    OidcWebsite,
}

/// A part outside of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The document store.
    Store,
    /// The Kubernetes cluster it works on: its own in a pod, a configured one when it runs alone.
    Cluster,
    /// The cloud that the service runs in, with the service's own identity and its first-party application.
    Cloud,
}

/// One socket of a role.
#[derive(Debug)]
pub struct ListenerDescriptor {
    /// The name of the port in the pod and its Service.
    pub name: &'static str,
    /// The port in the pod and its Service.
    pub port: u16,
    /// Its name in the table of endpoints.
    pub endpoint: &'static str,
    /// What is served there.
    pub about: &'static str,
    /// The configuration key with the address when the role runs alone.
    pub key: &'static str,
    /// That address.
    pub address: fn(&Loaded) -> Result<SocketAddr, ConfigProblems>,
    /// The scheme of its URL, by configuration.
    pub scheme: fn(&Loaded) -> &'static str,
    /// The port that `aro up --debug-ports` opens for it.
    pub debug: Option<DebugListener>,
}

/// A loopback port of a region that leads to a listener in a pod.
#[derive(Debug)]
pub struct DebugListener {
    /// The configuration key with its address.
    pub key: &'static str,
    /// That address; `None` keeps it closed.
    pub address: fn(&Loaded) -> Result<Option<SocketAddr>, ConfigProblems>,
    /// The scheme of its URL.
    pub scheme: &'static str,
}
