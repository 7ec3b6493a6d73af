//! `aro <role>`: one role alone.

use std::process::ExitCode;

use aro_app::{Composition, RoleDescriptor};

use crate::cli::RoleArgs;
use crate::stack::{self, Job};

pub async fn run(args: RoleArgs, role: &'static RoleDescriptor) -> anyhow::Result<ExitCode> {
    run_alone(args, Composition::Roles(vec![role])).await
}

/// Runs a composition that reports its endpoints in the log.
pub async fn run_alone(args: RoleArgs, what: Composition) -> anyhow::Result<ExitCode> {
    let RoleArgs { sources, data, endpoints_file } = args;
    stack::run(Job {
        sources: sources.sources(data.data_dir),
        ephemeral: data.ephemeral,
        what,
        endpoints_file,
        announce: |app| {
            for endpoint in app.endpoints() {
                tracing::info!(name = endpoint.name, url = endpoint.url(), "ready");
            }
        },
    })
    .await
}
