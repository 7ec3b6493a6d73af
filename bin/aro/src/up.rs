//! `aro up`.

use std::fmt::Write as _;
use std::process::ExitCode;

use aro_app::{RoleName, RunningApp};

use crate::cli::UpArgs;
use crate::output::say;
use crate::stack::{self, Job};

pub async fn run(args: UpArgs) -> anyhow::Result<ExitCode> {
    // While the front end is the only way in, its port is open without `--debug-ports`, and no other role has one.
    let UpArgs { sources, data, debug_ports: _, endpoints_file } = args;
    stack::run(Job {
        sources: sources.sources(data.data_dir),
        ephemeral: data.ephemeral,
        roles: RoleName::ALL.to_vec(),
        endpoints_file,
        announce,
    })
    .await
}

fn announce(app: &RunningApp) {
    say(&announcement(app));
}

fn announcement(app: &RunningApp) -> String {
    let mut text = format!("aro is ready. Data: {}\n\n", app.data_dir().display());
    text.push_str(&aro_app::table(app.endpoints()));
    if let Some(frontend) = app.endpoints().iter().find(|endpoint| endpoint.name == "frontend") {
        text.push_str(&next_steps(&frontend.url()));
    }
    if app.addr("kube").is_some() {
        let kubeconfig = app.data_dir().join("kube/kubeconfig.yaml");
        let _ =
            writeln!(text, "  kubectl --kubeconfig {} --context svc get namespaces", kubeconfig.display());
    }
    text.push_str("\nCtrl-C stops it.\n");
    text
}

/// Something to copy and paste.
fn next_steps(frontend: &str) -> String {
    let subscription = format!("{frontend}/subscriptions/00000000-0000-0000-0000-000000000001");
    format!(
        "\nNext:\n  \
         curl -X PUT '{subscription}?api-version=2.0' -H 'content-type: application/json' \
         -d '{{\"state\":\"Registered\",\"registrationDate\":\"2024-01-01T00:00:00Z\",\"properties\":{{\"tenantId\":\"00000000-0000-0000-0000-000000000002\"}}}}'\n  \
         curl '{subscription}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters?api-version=2024-06-10-preview'\n"
    )
}
