//! The `aro` program: parses the command line and calls `aro-app`. Nothing else happens here, except what only a
//! program may do: install the log subscriber, listen for signals, end the process.

mod cli;
mod config;
mod gen_crds;
mod generate;
mod kube;
mod migrate;
mod output;
mod role;
mod stack;
mod up;
mod version;

use std::process::ExitCode;

use aro_app::RoleName;
use clap::Parser as _;

use crate::cli::{Cli, Command, GenArgs, GenCommand, MaestroArgs, MaestroCommand};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("start the async runtime")),
    };
    match runtime.block_on(run(cli.command)) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => up::run(args).await,
        Command::Frontend(args) => role::run(args, RoleName::Frontend).await,
        Command::Broker(args) => role::run(args, RoleName::Broker).await,
        Command::Mce(args) => role::run(args, RoleName::Mce).await,
        Command::Maestro(MaestroArgs { command }) => match command {
            MaestroCommand::Server(args) => role::run(args, RoleName::MaestroServer).await,
            MaestroCommand::Agent(args) => role::run(args, RoleName::MaestroAgent).await,
        },
        Command::Kube(args) => kube::run(args).await,
        Command::Kubeconfig(args) => kube::kubeconfig(args),
        Command::Config(args) => Ok(config::run(args)),
        Command::Migrate(args) => migrate::run(args).await,
        Command::Gen(GenArgs { command: GenCommand::Crds(args) }) => gen_crds::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Version => Ok(version::run()),
    }
}

/// One line with every cause.
fn failed(error: &anyhow::Error) -> ExitCode {
    output::complain(&format!("error: {error:#}"));
    ExitCode::FAILURE
}
