//! The commands of the operations guide, as printed, but for the local ports of its port-forwards.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use aro_cloud::Precondition;
use aro_hcp_e2e::HcpRegion;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::flow::VERSION;

/// A `kubectl port-forward` while it runs.
struct Forward {
    port: u16,
    _kubectl: Child,
    /// Kept open: kubectl prints a line for each connection.
    _lines: Lines<BufReader<ChildStdout>>,
}

/// A shell on one cluster of the region.
struct Shell {
    kubeconfig: tempfile::TempPath,
}

impl Shell {
    /// A kubeconfig whose current context is the cluster, as operators have it.
    fn on(region: &HcpRegion, cluster: &str) -> Result<Self> {
        let path = region.process().data_dir().join("kube/kubeconfig.yaml");
        let text = std::fs::read_to_string(path)?;
        let lines = text.lines().map(|line| match line.starts_with("current-context:") {
            true => format!("current-context: {cluster}"),
            false => line.to_owned(),
        });
        let file = tempfile::NamedTempFile::new()?.into_temp_path();
        std::fs::write(&file, lines.collect::<Vec<_>>().join("\n"))?;
        Ok(Self { kubeconfig: file })
    }

    fn path(&self) -> &Path {
        &self.kubeconfig
    }

    async fn run(&self, script: &str) -> Result<String> {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]).env("KUBECONFIG", self.path()).kill_on_drop(true);
        let output = command.output().await?;
        ensure!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    async fn json(&self, script: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.run(script).await?)?)
    }

    /// `kubectl port-forward` as the guide prints it, on a free port.
    async fn forward(&self, printed: &str) -> Result<Forward> {
        let (command, ports) = printed.rsplit_once(' ').context("a command with ports")?;
        let (_, remote) = ports.split_once(':').context("a local and a remote port")?;
        let mut kubectl = Command::new("bash")
            .args(["-c", &format!("exec {command} :{remote}")])
            .env("KUBECONFIG", self.path())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(kubectl.stdout.take().context("its output")?).lines();
        // Forwarding from 127.0.0.1:40123 -> 8000
        let line = lines.next_line().await?.context("kubectl prints the port")?;
        let port = line.split(" -> ").next().and_then(|from| from.rsplit(':').next());
        Ok(Forward { port: port.context("a port")?.parse()?, _kubectl: kubectl, _lines: lines })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_operations_guide_answers_as_printed() -> Result<()> {
    let region = HcpRegion::start(&[]).await?;
    let customer = region.customer().await?;
    let cluster = customer.prepare("guide").await?;
    customer.arm.put(&cluster.id, VERSION, &cluster.body, &Precondition::None).await?;
    let (svc, mgmt) = (Shell::on(&region, "svc")?, Shell::on(&region, "mgmt-1")?);

    let frontend = svc.forward("kubectl port-forward -n aro-hcp svc/aro-hcp-frontend 8443:8443").await?;
    let resource_id = format!("RESOURCE_ID=\"{}\"\n", cluster.id);
    let shown = svc
        .json(&format!(
            "{resource_id}curl -s localhost:{}${{RESOURCE_ID}}?api-version=2024-06-10-preview | jq",
            frontend.port
        ))
        .await?;
    for member in
        ["/id", "/properties/provisioningState", "/properties/api/url", "/properties/dns/baseDomain"]
    {
        ensure!(shown.pointer(member).is_some_and(Value::is_string), "{member} of {shown}");
    }

    let forward =
        svc.forward("kubectl port-forward -n cluster-service svc/clusters-service 8001:8000").await?;
    let found = svc
        .json(&format!(
            "{resource_id}export HCP_SUBSCRIPTION_ID=$(echo \"$RESOURCE_ID\" | cut -d'/' -f3)
export HCP_RESOURCE_GROUP_NAME=$(echo \"$RESOURCE_ID\" | cut -d'/' -f5)
curl -sG http://localhost:{}/api/clusters_mgmt/v1/clusters --data-urlencode \"search=azure.subscription_id='$HCP_SUBSCRIPTION_ID' and azure.resource_group_name='$HCP_RESOURCE_GROUP_NAME'\" | jq",
            forward.port
        ))
        .await?;
    let record = found["items"].get(0).with_context(|| format!("{found}"))?;
    ensure!(record["azure"]["resource_name"] == "guide" && record["status"]["state"] == "ready", "{record}");
    let (id, href) = (record["id"].as_str().context("an id")?, record["href"].as_str().context("a href")?);
    let shard = svc
        .json(&format!(
            "CLUSTER_HREF={href}\ncurl -sG http://localhost:{}/${{CLUSTER_HREF}}/provision_shard | jq",
            forward.port
        ))
        .await?;
    let vault = shard["azure_shard"]["cx_managed_identities_key_vault_url"].as_str().unwrap_or_default();
    ensure!(
        vault.trim_end_matches('/').split('.').next().is_some_and(|name| name.ends_with("-1")),
        "{shard}"
    );

    let maestro = svc.forward("kubectl port-forward -n maestro svc/maestro 8002:8000").await?;
    let bundles = svc
        .json(&format!(
            "CLUSTERS_SERVICE_ID={id}
curl -sG http://localhost:{}/api/maestro/v1/resource-bundles --data-urlencode \"search=payload->'metadata'->'labels'->>'api.openshift.com/id'='${{CLUSTERS_SERVICE_ID}}'\" | jq",
            maestro.port
        ))
        .await?;
    let feedback = svc
        .run(&format!(
            "cat <<'END' | jq -r '.items[].status.resourceStatus[]?.statusFeedback.values[]?.fieldValue.jsonRaw | fromjson | .resourceStatus.manifests[]?.statusFeedback'\n{bundles}\nEND"
        ))
        .await?;
    ensure!(feedback.contains("Available-Status"), "{feedback}");
    ensure!(
        bundles["items"][0]["updated_at"].is_string()
            && bundles["items"][0]["status"]["conditions"].is_array()
    );

    mgmt.run("kubectl logs -n maestro deployment/maestro-agent -c maestro-agent").await?;
    let script = format!(
        "CLUSTERS_SERVICE_ID={id}\nkubectl get manifestwork -l \"api.openshift.com/id=${{CLUSTERS_SERVICE_ID}}\" -n local-cluster"
    );
    ensure!(mgmt.run(&script).await?.contains(id));
    ensure!(mgmt.run("kubectl get managedclusters").await?.contains(id));
    let hosted = mgmt.run("kubectl get hostedclusters -A").await?;
    ensure!(hosted.contains(&format!("ocm-arohcpdev-{id}")) && hosted.contains("guide"), "{hosted}");
    mgmt.run(&format!("kubectl get pods -n ocm-arohcpdev-{id}-guide")).await?;
    Ok(())
}
