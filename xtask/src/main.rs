//! Logic behind `make`: checks and generated files. Run as `cargo xtask <command>`.

mod generate;
mod kube_types;
mod kube_wire;
mod layers;
mod manifests;
mod test;
mod words;
mod workspace;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prove that dependencies only point down, and that every manifest inherits what it should.
    CheckLayers,
    /// Refuse words that hide the component they speak of, in text that people read.
    CheckWords {
        /// Lower the baseline to what is there now.
        #[arg(long)]
        write: bool,
    },
    /// Run every test; end with what was skipped, and why.
    Test {
        /// Run a failed test again, alone; one that passes then is reported as flaky.
        #[arg(long)]
        rerun_failed: bool,
        /// Passed on to cargo.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write the generated documents; with --check only say whether they are up to date.
    Gen {
        /// Change nothing; fail if something would change.
        #[arg(long)]
        check: bool,
    },
    /// Write the table of field numbers of Kubernetes' protobuf messages.
    GenKubeWire {
        /// `k8s.io` in a Go module cache.
        #[arg(long)]
        go: PathBuf,
    },
    /// Write the tables of Kubernetes' built-in types from recorded answers of a real API server.
    GenKubeTypes {
        /// Where the recorded answers are.
        #[arg(long)]
        specs: Option<PathBuf>,
        /// `k8s.io` in a Go module cache: also reads which members are pointers (gen/shapes.json).
        #[arg(long)]
        go: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let complaints = run(Cli::parse().command).unwrap_or_else(|error| vec![format!("error: {error:#}")]);
    for complaint in &complaints {
        // Without stderr there is no place to report to.
        let _ = writeln!(std::io::stderr(), "{complaint}");
    }
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does what was asked and returns what is wrong with the workspace.
fn run(command: Command) -> anyhow::Result<Vec<String>> {
    let root = workspace::root()?;
    match command {
        Command::CheckLayers => check_layers(&root),
        Command::CheckWords { write } => words::run(&root, write),
        Command::Test { rerun_failed, arguments } => test::run(&root, rerun_failed, &arguments),
        Command::GenKubeWire { go } => kube_wire::run(&root, &go).map(|()| Vec::new()),
        Command::Gen { check } => {
            let mut complaints = generate::run(&root, check)?;
            // Writing the tables needs the recordings, so that has its own command.
            if check {
                complaints.extend(kube_types::run(&root, None, None, check)?);
            }
            Ok(complaints)
        }
        Command::GenKubeTypes { specs, go } => kube_types::run(&root, specs.as_deref(), go.as_deref(), false),
    }
}

fn check_layers(root: &Path) -> anyhow::Result<Vec<String>> {
    let crates = workspace::crates(root)?;
    let mut complaints = layers::violations(&crates);
    for member in &crates {
        let path = root.join(&member.path).join("Cargo.toml");
        let manifest: toml::Table = std::fs::read_to_string(&path)?.parse()?;
        complaints.extend(manifests::violations(&member.name, &manifest));
    }
    Ok(complaints)
}
