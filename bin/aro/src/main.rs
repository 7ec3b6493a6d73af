//! The `aro` program: parses the command line and calls `aro-app`. Nothing else happens here, except what only a
//! program may do: install the log subscriber, listen for signals, end the process.

mod cli;
mod cloud;
mod config;
mod env;
mod gen_crds;
mod generate;
mod kube;
mod migrate;
mod output;
mod role;
mod stack;
mod up;
mod version;
mod why;

use std::process::ExitCode;

use aro_app::Registry;

use crate::cli::{Command, GenArgs, GenCommand, Invocation};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let invocation = match cli::parse(Registry::ARO, std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => error.exit(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("start the async runtime")),
    };
    match runtime.block_on(run(invocation)) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

async fn run(invocation: Invocation) -> anyhow::Result<ExitCode> {
    let command = match invocation {
        Invocation::Role(role, args) => return role::run(args, role).await,
        Invocation::Command(command) => *command,
    };
    match command {
        Command::Up(args) => up::run(args).await,
        Command::Kube(args) => kube::run(args).await,
        Command::Kubeconfig(args) => kube::kubeconfig(args),
        Command::Env(args) => env::run(args),
        Command::Cloud(args) => cloud::run(*args).await,
        Command::Why(args) => why::run(args).await,
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
