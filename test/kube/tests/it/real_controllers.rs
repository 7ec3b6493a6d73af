//! The original's own controllers on our API server. They speak protobuf, watch everything, and trust nothing but the API.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_kube_e2e::real::binaries;

use crate::support::region;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn kubectl(binary: &std::path::Path, config: &std::path::Path, line: &str) -> Result<String> {
    let mut command = tokio::process::Command::new(binary);
    command.arg("--kubeconfig").arg(config).args(line.split(' ')).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_mins(1), command.output()).await??;
    ensure!(output.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_original_controller_manager_rolls_out_a_deployment_on_our_server() -> Result<()> {
    let Some(binaries) = tokio::task::spawn_blocking(binaries).await?? else {
        aro_prerequisites::skip("no Go toolchain: the original controllers do not run");
        return Ok(());
    };
    // Without controllers and nodes of ours.
    let process = region(&["svc"]).await?;
    let config = process.data_dir().join("kube/kubeconfig/svc.yaml");
    let log = tempfile::NamedTempFile::new()?;
    let manager = Command::new(binaries.join("kube-controller-manager"))
        .arg("--kubeconfig")
        .arg(&config)
        .args(["--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=500"])
        .stdout(Stdio::null())
        .stderr(log.reopen()?)
        .spawn()
        .context("start kube-controller-manager")?;
    let _manager = Running(manager);
    let k = async |line: &str| kubectl(&binaries.join("kubectl"), &config, line).await;
    k("create deployment web --image=nginx --replicas=3").await?;
    // Its controllers make the replica set and the pods.
    let pods = aro_fixtures::wait::until("three pods", || async {
        let names = k("get pods -l app=web -o name").await?;
        Ok((names.lines().count() == 3).then_some(names))
    });
    let pods = pods.await.with_context(|| std::fs::read_to_string(log.path()).unwrap_or_default())?;
    ensure!(pods.contains("pod/web-"), "{pods}");
    k("scale deployment web --replicas=1").await?;
    aro_fixtures::wait::until("one pod", || async {
        Ok((k("get pods -l app=web -o name").await?.lines().count() == 1).then_some(()))
    })
    .await?;
    k("delete deployment web --cascade=foreground").await?;
    let left = k("get deployments,replicasets,pods -l app=web -o name").await?;
    ensure!(left.trim().is_empty(), "left behind: {left}");
    let failures = std::fs::read_to_string(log.path())?;
    let broken: Vec<&str> = failures.lines().filter(|line| line.contains("Failed to watch")).collect();
    ensure!(broken.is_empty(), "{broken:#?}");
    Ok(())
}
