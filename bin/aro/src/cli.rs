//! The command line: the commands of the program itself, and one subcommand for each role of the registry.

use std::ffi::OsString;
use std::path::PathBuf;

use aro_app::{Registry, RoleDescriptor};
use aro_runtime::config::Sources;
use aro_runtime::{Environment, Profile};
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::cloud::CloudArgs;
use crate::why::WhyArgs;

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
    /// Run embedded Kubernetes alone.
    Kube(KubeArgs),
    /// Print the kubeconfig of a cluster that `aro up` or `aro kube` runs.
    Kubeconfig(KubeconfigArgs),
    /// Print the environment in which az, the Azure SDKs and kubectl use the region: `eval "$(aro env)"`.
    Env(EnvArgs),
    /// Look into the local cloud, and make it fail on purpose.
    Cloud(Box<CloudArgs>),
    /// Print what happened to a resource, an operation or a bundle, and what it waits for.
    Why(WhyArgs),
    /// Print or check the configuration.
    Config(ConfigArgs),
    /// Bring the store's schema up to date.
    Migrate(MigrateArgs),
    /// Write files that other tools install.
    Gen(GenArgs),
    /// Write the reference documents of this program.
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// Print the version.
    Version,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// A command of the program.
    Command(Box<Command>),
    /// A role, alone.
    Role(&'static RoleDescriptor, RoleArgs),
}

/// The commands of the program and the subcommands of its roles.
pub fn command(registry: Registry) -> clap::Command {
    let mut cli = Cli::command();
    for role in registry.iter() {
        let own = RoleArgs::augment_args(clap::Command::new(role.command)).about(role.about);
        let Some(group) = role.group else {
            cli = cli.subcommand(own);
            continue;
        };
        if cli.find_subcommand(group.name).is_none() {
            let empty = clap::Command::new(group.name).about(group.about);
            cli = cli.subcommand(empty.subcommand_required(true).arg_required_else_help(true));
        }
        cli = cli.mut_subcommand(group.name, |group| group.subcommand(own));
    }
    cli
}

/// Parses arguments, the program's name first.
pub fn parse(
    registry: Registry,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Invocation, clap::Error> {
    let mut cli = command(registry);
    let matches = cli.try_get_matches_from_mut(arguments)?;
    if let Some((role, matches)) = role_of(registry, &matches) {
        return Ok(Invocation::Role(role, RoleArgs::from_arg_matches(matches)?));
    }
    let parsed = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut cli))?;
    Ok(Invocation::Command(Box::new(parsed.command)))
}

/// The role whose subcommand was called.
fn role_of(registry: Registry, matches: &ArgMatches) -> Option<(&'static RoleDescriptor, &ArgMatches)> {
    let (name, inner) = matches.subcommand()?;
    registry.iter().find_map(|role| match role.group {
        None => (role.command == name).then_some((role, inner)),
        Some(group) if group.name == name => {
            inner.subcommand().filter(|(name, _)| *name == role.command).map(|(_, inner)| (role, inner))
        }
        Some(_) => None,
    })
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
    /// Also open, on loopback, the ports that a region keeps closed.
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
pub struct KubeArgs {
    #[command(flatten)]
    pub role: RoleArgs,
    /// A cluster to run; made when it is not there yet. May be given many times. Short for `--set kube.clusters=…`.
    #[arg(long = "cluster", value_name = "NAME")]
    pub clusters: Vec<String>,
}

#[derive(Debug, Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub sources: ConfigSources,
    /// Where the region's data lives.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
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
    /// Check the configuration and report everything that is wrong with it.
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

    fn parsed(arguments: &str) -> Result<Invocation, clap::Error> {
        parse(Registry::ARO, arguments.split(' ').map(OsString::from))
    }

    #[test]
    fn the_command_line_is_consistent() {
        command(Registry::ARO).debug_assert();
    }

    #[test]
    fn every_role_has_a_subcommand() {
        for role in Registry::ARO.iter() {
            let line = format!("aro {} --ephemeral", role.command_line());
            let Ok(Invocation::Role(found, args)) = parsed(&line) else { panic!("{line}") };
            assert_eq!(found.name, role.name);
            assert!(args.data.ephemeral);
        }
    }

    #[test]
    fn a_role_that_is_added_to_the_registry_has_a_subcommand() {
        let registry = Registry::new(&[&aro_scratch_role::DESCRIPTOR]);
        let parsed = parse(registry, ["aro", "scratch"].map(OsString::from));
        assert!(matches!(parsed, Ok(Invocation::Role(role, _)) if role.name == "scratch"));
        let help = command(registry).render_help().to_string();
        assert!(help.contains("Run the scratch role alone"), "{help}");
    }

    #[test]
    fn commands_of_the_program_are_not_roles() {
        for line in ["aro up --ephemeral", "aro kube --cluster svc", "aro version", "aro config check"] {
            assert!(matches!(parsed(line), Ok(Invocation::Command(_))), "{line}");
        }
        for line in ["aro", "aro maestro", "aro nothing", "aro maestro nothing"] {
            assert!(parsed(line).is_err(), "{line}");
        }
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
