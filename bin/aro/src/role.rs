//! `aro <role>`: one role alone.

use std::process::ExitCode;

use aro_app::{Composition, RoleName};

use crate::cli::RoleArgs;
use crate::stack::{self, Job};

pub async fn run(args: RoleArgs, role: RoleName) -> anyhow::Result<ExitCode> {
    let RoleArgs { sources, data, endpoints_file } = args;
    stack::run(Job {
        sources: sources.sources(data.data_dir),
        ephemeral: data.ephemeral,
        what: Composition::Roles(vec![role]),
        endpoints_file,
        announce: |app| {
            for endpoint in app.endpoints() {
                tracing::info!(name = endpoint.name, url = endpoint.url(), "ready");
            }
        },
    })
    .await
}
