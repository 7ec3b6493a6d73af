//! The README's walk is run as it is printed.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use aro_harness::Stack;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn shell(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(ROOT).kill_on_drop(true);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn the_five_minute_walk_works_as_printed() -> Result<()> {
    let readme = std::fs::read_to_string(format!("{ROOT}/README.md"))?;
    let walk = readme.split("## A five-minute walk").nth(1).context("a walk")?;
    let walk = walk.split("\n## ").next().context("its end")?;
    let scripts: Vec<&str> =
        walk.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [forward, calls] = scripts.as_slice() else {
        anyhow::bail!("the walk has two scripts: {scripts:?}");
    };
    let stack = Stack::start().await?;
    let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
    let kubeconfig = stack.app()?.data_dir().join("kube/kubeconfig.yaml").display().to_string();
    // The last command stays: as the shell itself, it ends with the test.
    let forward = replaced(forward, "~/.local/share/aro/kube/kubeconfig.yaml", &kubeconfig)?;
    let forward = replaced(&forward, " 8443:8443", &format!(" {port}:8443"))?;
    let forward =
        replaced(&forward, "kubectl --context svc port-forward", "exec kubectl --context svc port-forward")?;
    let mut forwarding = shell(&forward).stdout(Stdio::null()).spawn()?;
    wait::until("the forwarded port to answer", || async {
        Ok(TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(()))
    })
    .await?;
    let calls = replaced(calls, "http://127.0.0.1:8443", &format!("http://127.0.0.1:{port}"))?;
    let output = shell(&calls).output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    ensure!(said.contains("HTTP/1.1 201") && said.contains("HTTP/1.1 202"), "{said}");
    ensure!(
        said.contains("\"provisioningState\": \"Accepted\"") && said.contains("MultipleErrorsOccurred"),
        "{said}"
    );
    forwarding.kill().await?;
    stack.stop().await
}

/// The script with what is different here; it has to say what the README prints.
fn replaced(script: &str, printed: &str, here: &str) -> Result<String> {
    ensure!(script.contains(printed), "the walk says `{printed}`: {script}");
    Ok(script.replace(printed, here))
}
