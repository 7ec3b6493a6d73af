//! `aro up`.

use std::fmt::Write as _;
use std::process::ExitCode;

use aro_app::{Composition, Endpoint, RunningApp};

use crate::cli::UpArgs;
use crate::output::say;
use crate::stack::{self, Job};

pub async fn run(args: UpArgs) -> anyhow::Result<ExitCode> {
    let UpArgs { sources, data, debug_ports, endpoints_file } = args;
    stack::run(Job {
        sources: sources.sources(data.data_dir),
        ephemeral: data.ephemeral,
        what: Composition::Region { debug_ports },
        endpoints_file,
        announce,
    })
    .await
}

fn announce(app: &RunningApp) {
    say(&announcement(app));
}

fn announcement(app: &RunningApp) -> String {
    let mut text = format!(
        "aro is ready. Data: {}

",
        app.data_dir().display()
    );
    text.push_str(&aro_app::table(app.endpoints()));
    let kubeconfig = app.data_dir().join("kube/kubeconfig.yaml");
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "
Next:
  export KUBECONFIG={}
  kubectl --context svc get pods -A
  eval \"$(aro env)\" && az login --service-principal -u $AZURE_CLIENT_ID -p $AZURE_CLIENT_SECRET -t $AZURE_TENANT_ID
",
        kubeconfig.display()
    );
    let frontend = app.endpoints().iter().find(|endpoint| endpoint.name == "frontend");
    if frontend.is_none() {
        text.push_str(
            "  kubectl --context svc port-forward -n aro-hcp svc/aro-hcp-frontend 8443:8443 &
",
        );
    }
    text.push_str(&next_steps(&frontend.map_or_else(|| "http://localhost:8443".to_owned(), Endpoint::url)));
    text.push_str(
        "
Ctrl-C stops it.
",
    );
    text
}

/// Something to copy and paste.
fn next_steps(frontend: &str) -> String {
    let subscription = format!("{frontend}/subscriptions/00000000-0000-0000-0000-000000000001");
    format!(
        "  \
         curl -X PUT '{subscription}?api-version=2.0' -H 'content-type: application/json' \
         -d '{{\"state\":\"Registered\",\"registrationDate\":\"2024-01-01T00:00:00Z\",\"properties\":{{\"tenantId\":\"00000000-0000-0000-0000-000000000002\"}}}}'
  \
         curl '{subscription}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters?api-version=2026-10-01'
"
    )
}
