//! The command line.

use std::path::PathBuf;

use aro_runtime::config::Sources;
use aro_runtime::{Environment, Profile};
use clap::{Args, Parser, Subcommand};

/// Azure Red Hat OpenShift, the whole service in one binary.
#[derive(Debug, Parser)]
#[command(name = "aro", version, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a complete region in this process.
    Up(UpArgs),
    /// Run the ARM front end alone.
    Frontend(RoleArgs),
    /// Run the embedded MQTT broker alone.
    Broker(RoleArgs),
    /// Run the multicluster engine of a management cluster alone.
    Mce(RoleArgs),
    /// Manifests over MQTT.
    Maestro(MaestroArgs),
    /// Run embedded Kubernetes alone.
    Kube(KubeArgs),
    /// Print the kubeconfig of a cluster that `aro up` or `aro kube` runs.
    Kubeconfig(KubeconfigArgs),
    /// Look at the configuration.
    Config(ConfigArgs),
    /// Bring the store's schema up to date.
    Migrate(MigrateArgs),
    /// Write what others install.
    Gen(GenArgs),
    /// Write the reference documents of this program.
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// Print the version.
    Version,
}

/// Where configuration comes from; the same for every command.
#[derive(Debug, Args)]
pub struct ConfigSources {
    /// The configuration file (TOML). Also `ARO_CONFIG`.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The profile: `dev` or `prod`. Also `ARO_PROFILE`.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,
    /// Set one configuration key; wins over everything else. May be given many times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// What to log, for example `info,aro_frontend=debug`. Short for `--set telemetry.log=…`.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}

/// Where data lives.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Where data lives. Short for `--set process.data_dir=…`.
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    pub data_dir: Option<PathBuf>,
    /// Keep data in a temporary directory that goes when the process ends.
    #[arg(long)]
    pub ephemeral: bool,
}

#[derive(Debug, Args)]
pub struct UpArgs {
    #[command(flatten)]
    pub sources: ConfigSources,
    #[command(flatten)]
    pub data: DataArgs,
    /// Open on loopback the ports that a region keeps to itself, too.
    #[arg(long)]
    pub debug_ports: bool,
    /// Once ready, write the bound addresses to this file, as JSON: `{"name": "address"}`.
    #[arg(long, value_name = "PATH")]
    pub endpoints_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RoleArgs {
    #[command(flatten)]
    pub sources: ConfigSources,
    #[command(flatten)]
    pub data: DataArgs,
    /// Once ready, write the bound addresses to this file, as JSON: `{"name": "address"}`.
    #[arg(long, value_name = "PATH")]
    pub endpoints_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct MaestroArgs {
    #[command(subcommand)]
    pub command: MaestroCommand,
}

#[derive(Debug, Subcommand)]
pub enum MaestroCommand {
    /// Run the Maestro server alone.
    Server(RoleArgs),
    /// Run the agent of a management cluster alone.
    Agent(RoleArgs),
}

#[derive(Debug, Args)]
pub struct KubeArgs {
    #[command(flatten)]
    pub role: RoleArgs,
    /// A cluster to run; made when it is not there yet. May be given many times. Short for `--set kube.clusters=…`.
    #[arg(long = "cluster", value_name = "NAME")]
    pub clusters: Vec<String>,
}

#[derive(Debug, Args)]
pub struct KubeconfigArgs {
    /// The cluster's name; without one, a kubeconfig with all clusters is printed.
    pub cluster: Option<String>,
    #[command(flatten)]
    pub sources: ConfigSources,
    /// Where data lives. Short for `--set process.data_dir=…`.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the effective configuration and where each value comes from.
    Print(ConfigSources),
    /// Say whether the configuration can be used, or everything that is wrong with it.
    Check(ConfigSources),
}

#[derive(Debug, Args)]
pub struct MigrateArgs {
    #[command(flatten)]
    pub sources: ConfigSources,
    /// Where data lives. Short for `--set process.data_dir=…`.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct GenArgs {
    #[command(subcommand)]
    pub command: GenCommand,
}

#[derive(Debug, Subcommand)]
pub enum GenCommand {
    /// Print the definitions of our custom resources, as YAML documents.
    Crds(GenCrdsArgs),
}

#[derive(Debug, Args)]
pub struct GenCrdsArgs {
    /// Write one file per definition into this directory instead; it is made when it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// The directory to write to.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    pub out: PathBuf,
}

impl ConfigSources {
    /// Everything a configuration is merged from, the process environment included.
    pub fn sources(self, data_dir: Option<PathBuf>) -> Sources {
        let mut flags = self.set;
        flags.extend(self.log.map(|log| ("telemetry.log".to_owned(), log)));
        flags.extend(data_dir.map(|dir| ("process.data_dir".to_owned(), dir.display().to_string())));
        Sources { profile: self.profile, file: self.config, environment: Environment::of_process(), flags }
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or("expected KEY=VALUE, for example frontend.listen=127.0.0.1:0")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_value_may_contain_an_equals_sign() {
        assert_eq!(
            key_value("telemetry.log=info,aro_web=debug").unwrap(),
            ("telemetry.log".to_owned(), "info,aro_web=debug".to_owned())
        );
        assert!(key_value("frontend.listen").is_err());
    }
}
