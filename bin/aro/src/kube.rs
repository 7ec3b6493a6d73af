//! `aro kube` and `aro kubeconfig`.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use aro_app::{AppConfig, Composition};
use aro_runtime::Environment;

use crate::cli::{KubeArgs, KubeconfigArgs};
use crate::output::say;
use crate::{role, stack};

pub async fn run(args: KubeArgs) -> anyhow::Result<ExitCode> {
    let KubeArgs { mut role, clusters } = args;
    if !clusters.is_empty() {
        let names: Vec<String> = clusters.iter().map(|name| format!("{name:?}")).collect();
        role.sources.set.push(("kube.clusters".to_owned(), format!("[{}]", names.join(", "))));
    }
    role::run_alone(role, Composition::Kube).await
}

/// Prints the file that the running process has written; no other process holds the keys.
pub fn kubeconfig(args: KubeconfigArgs) -> anyhow::Result<ExitCode> {
    let config = AppConfig::load(&args.sources.sources(args.data_dir))?;
    let data = stack::data_dir(&config, false, &Environment::of_process())?;
    let dir = data.path().join("kube");
    let path = match &args.cluster {
        Some(cluster) => dir.join("kubeconfig").join(format!("{cluster}.yaml")),
        None => dir.join("kubeconfig.yaml"),
    };
    if !path.is_file() {
        let known = std::fs::read_dir(dir.join("kubeconfig"))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".yaml").map(str::to_owned));
        let mut known: Vec<String> = known.collect();
        known.sort();
        let data = data.path().display();
        if known.is_empty() {
            bail!(
                "no cluster has run in {data} yet; start `aro up`, or name its data directory with --data-dir"
            );
        }
        bail!("there is no such cluster in {data}; there are: {}", known.join(", "));
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    say(&text);
    Ok(ExitCode::SUCCESS)
}
