//! The command line of `aro cloud`.

use std::path::PathBuf;

use aro_app::azure_local::{Fault, Operation, Rule, Service};
use aro_runtime::Period;
use clap::{Args, Subcommand, ValueEnum};

use crate::cli::ConfigSources;

#[derive(Debug, Args)]
pub struct CloudArgs {
    #[command(subcommand)]
    pub command: CloudCommand,
}

#[derive(Debug, Subcommand)]
pub enum CloudCommand {
    /// Make the local cloud fail on purpose.
    Faults(FaultsArgs),
    /// Print what requests did to resources, since the cloud started.
    Mutations(MutationsArgs),
    /// List the resources of all tenants and subscriptions.
    Ls(LsArgs),
    /// Print one resource as JSON.
    Show(ShowArgs),
}

/// Which cloud.
#[derive(Debug, Args)]
pub struct Target {
    #[command(flatten)]
    pub sources: ConfigSources,
    /// Where the region's data lives.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Json,
    Table,
}

#[derive(Debug, Args)]
pub struct FaultsArgs {
    #[command(subcommand)]
    pub command: FaultsCommand,
}

#[derive(Debug, Subcommand)]
pub enum FaultsCommand {
    /// Add a rule; prints its number. What is not named matches every request to ARM.
    Add(Box<AddArgs>),
    /// List the rules, how often each matched and fired.
    List(ListArgs),
    /// Remove a rule, or all; operations that it holds go on.
    Clear(ClearArgs),
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// What goes wrong.
    pub fault: FaultName,
    /// How long: of latency, of `Retry-After`, until a role assignment takes effect. For example 250ms, 30s, 5m.
    #[arg(long, value_name = "PERIOD")]
    pub delay: Option<Period>,
    /// A stuck operation ends after this many polls; otherwise when the rule is cleared.
    #[arg(long, value_name = "COUNT")]
    pub polls: Option<u32>,
    /// The service of the cloud.
    #[arg(long, value_name = "NAME", default_value = "arm")]
    pub service: ServiceName,
    /// What requests do.
    #[arg(long, value_name = "NAME")]
    pub operation: Option<OperationName>,
    /// The method of requests.
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// The type of resources, such as `Microsoft.Network/*`. `*` matches any text; case does not matter.
    #[arg(long = "type", value_name = "PATTERN")]
    pub resource_type: Option<String>,
    /// The id of resources, such as `*/resourceGroups/demo/*`; for other services than ARM host and path.
    #[arg(long, value_name = "PATTERN")]
    pub resource: Option<String>,
    /// How probable the fault is for each request that matches.
    #[arg(long, value_name = "0..1", default_value_t = 1.0)]
    pub probability: f64,
    /// How often it happens at most.
    #[arg(long)]
    pub count: Option<u64>,
    /// Of the rule's random decisions, to repeat a run.
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// How to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub struct ClearArgs {
    /// The rule's number; without one, all rules are removed.
    pub rule: Option<u64>,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub struct MutationsArgs {
    /// Go on with what happens from now on, until interrupted.
    #[arg(long)]
    pub follow: bool,
    /// How to print; JSON is one object a line.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub struct LsArgs {
    /// Only this subscription.
    #[arg(long, value_name = "ID")]
    pub subscription: Option<String>,
    /// Only groups of this name.
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// How to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Its resource id.
    pub resource_id: String,
    #[command(flatten)]
    pub target: Target,
}

/// A fault, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FaultName {
    /// Requests wait before they are handled.
    Latency,
    /// 429 with Retry-After.
    Throttle,
    /// 500; the request is not handled.
    ServerError,
    /// The connection ends before the request is handled.
    Cut,
    /// The request takes effect; its answer is lost.
    LostReply,
    /// Resources are not created: the quota is used up.
    QuotaExhausted,
    /// 403 AuthorizationFailed.
    PermissionMissing,
    /// Role assignments take effect late.
    LateRoleAssignment,
    /// Long-running operations stay in progress.
    StuckOperation,
}

impl From<FaultName> for Fault {
    fn from(name: FaultName) -> Self {
        match name {
            FaultName::Latency => Self::Latency,
            FaultName::Throttle => Self::Throttle,
            FaultName::ServerError => Self::ServerError,
            FaultName::Cut => Self::Cut,
            FaultName::LostReply => Self::LostReply,
            FaultName::QuotaExhausted => Self::QuotaExhausted,
            FaultName::PermissionMissing => Self::PermissionMissing,
            FaultName::LateRoleAssignment => Self::LateRoleAssignment,
            FaultName::StuckOperation => Self::StuckOperation,
        }
    }
}

/// A kind of request, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OperationName {
    /// GET and HEAD, without polls.
    Read,
    /// PUT and PATCH.
    Write,
    Delete,
    /// POST.
    Action,
    /// GET of the status of a long-running operation.
    Poll,
}

impl From<OperationName> for Operation {
    fn from(name: OperationName) -> Self {
        match name {
            OperationName::Read => Self::Read,
            OperationName::Write => Self::Write,
            OperationName::Delete => Self::Delete,
            OperationName::Action => Self::Action,
            OperationName::Poll => Self::Poll,
        }
    }
}

/// A service of the cloud, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServiceName {
    Arm,
    /// Entra ID.
    Login,
    Graph,
    /// The data plane of managed identities.
    Identity,
    Vault,
    Blob,
    Website,
    CheckAccess,
}

impl From<ServiceName> for Service {
    fn from(name: ServiceName) -> Self {
        match name {
            ServiceName::Arm => Self::Arm,
            ServiceName::Login => Self::Login,
            ServiceName::Graph => Self::Graph,
            ServiceName::Identity => Self::Identity,
            ServiceName::Vault => Self::Vault,
            ServiceName::Blob => Self::Blob,
            ServiceName::Website => Self::Website,
            ServiceName::CheckAccess => Self::CheckAccess,
        }
    }
}

impl AddArgs {
    /// The rule, and the cloud that it is for.
    pub fn into_rule(self) -> (Rule, Target) {
        let rule = Rule {
            fault: self.fault.into(),
            delay: self.delay,
            polls: self.polls,
            service: self.service.into(),
            operation: self.operation.map(Operation::from),
            method: self.method,
            resource_type: self.resource_type,
            resource: self.resource,
            probability: self.probability,
            count: self.count,
            seed: self.seed,
        };
        (rule, self.target)
    }
}
