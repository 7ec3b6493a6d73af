//! The README's walk is run as it is printed.

use anyhow::{Context, Result, ensure};
use aro_stack::Stack;
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn the_five_minute_walk_works_as_printed() -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let readme = std::fs::read_to_string(format!("{root}/README.md"))?;
    let walk = readme.split("## A five-minute walk").nth(1).context("a walk")?;
    let script =
        walk.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).context("its commands")?;
    let stack = Stack::start().await?;
    let script = script.replace("http://127.0.0.1:8443", &stack.base_url());
    ensure!(script.contains(&stack.base_url()), "the walk uses the printed address");
    let output =
        Command::new("bash").args(["-euc", &script]).current_dir(root).kill_on_drop(true).output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    ensure!(said.contains("HTTP/1.1 201") && said.contains("HTTP/1.1 202"), "{said}");
    ensure!(
        said.contains("\"provisioningState\": \"Accepted\"") && said.contains("MultipleErrorsOccurred"),
        "{said}"
    );
    stack.stop().await
}
