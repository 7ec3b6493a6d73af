//! `kubectl logs` of roles and of pods that are simulated.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use aro_fixtures::wait;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{Customer, DEPLOYMENT, OF_FRONTEND, Region};

#[tokio::test(flavor = "multi_thread")]
async fn the_front_ends_log_is_its_pods_log() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        let written = format!("PUT {} 201", customer.names.cluster("c1").to_lowercase());
        for k in &region.all {
            let pod = region.pod().await?;
            let shown = |text: &str| text.to_lowercase().contains(&written.to_lowercase());
            let all = k.ok(&format!("-n aro-hcp logs {pod}")).await?;
            ensure!(shown(&all) && !all.contains("api-version="), "{all}");
            ensure!(
                !all.contains("aro_kube_apiserver::"),
                "the API server's lines are none of its business: {all}"
            );
            for line in [
                format!("logs {DEPLOYMENT}"),
                format!("logs {OF_FRONTEND} --tail=-1"),
                "logs svc/aro-hcp-frontend -c aro-hcp-frontend".to_owned(),
            ] {
                let some = k.ok(&format!("-n aro-hcp {line}")).await?;
                ensure!(shown(&some), "{line}: {some}");
            }
            let last = k.ok(&format!("-n aro-hcp logs {pod} --tail=1")).await?;
            ensure!(last.lines().count() == 1 && all.ends_with(&last), "{last}");
            ensure!(shown(&k.ok(&format!("-n aro-hcp logs {pod} --since=1h")).await?));
            let later = "--since-time=2100-01-01T00:00:00Z";
            ensure!(k.ok(&format!("-n aro-hcp logs {pod} {later}")).await?.is_empty());
            let stamped = k.ok(&format!("-n aro-hcp logs {pod} --timestamps --tail=1")).await?;
            let (time, rest) = stamped.split_once(' ').context("a time and a line")?;
            time.parse::<aro_base::Timestamp>().with_context(|| stamped.clone())?;
            ensure!(rest == last, "{stamped}");
            k.fails(&format!("-n aro-hcp logs {pod} --previous"), "previous terminated container").await?;
            k.fails(&format!("-n aro-hcp logs {pod} -c nobody"), "container nobody is not valid for pod")
                .await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn following_a_log_shows_what_comes_and_ends_with_the_pod() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        for (index, k) in region.all.iter().enumerate() {
            let pod = region.pod().await?;
            let mut command = k.command(&format!("-n aro-hcp logs -f {pod} --tail=1"));
            let mut child = command.stdin(Stdio::null()).spawn()?;
            let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
            let first = tokio::time::timeout(wait::DEADLINE, lines.next_line()).await??;
            ensure!(first.is_some(), "it shows the last line at once");
            let cluster = format!("followed-{index}");
            customer.put(&region.arm()?, &cluster).await?;
            let follow = async {
                while let Some(line) = lines.next_line().await? {
                    if line.contains(&cluster) {
                        return Ok(());
                    }
                }
                anyhow::bail!("the log ended too early")
            };
            tokio::time::timeout(wait::DEADLINE, follow).await.context("the line comes")??;
            region.svc.ok(&format!("-n aro-hcp delete pod {pod}")).await?;
            let end = async {
                while lines.next_line().await?.is_some() {}
                anyhow::Ok(child.wait().await?)
            };
            let ended = tokio::time::timeout(wait::DEADLINE, end).await.context("it ends with the pod")??;
            ensure!(ended.success(), "{ended}");
            // Another one took over.
            region.svc.ok(&format!("-n aro-hcp rollout status {DEPLOYMENT} --timeout=30s")).await?;
            wait::until("the Service to know the new pod", || async {
                Ok(region.arm()?.get("/healthz").await.ok().map(drop))
            })
            .await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_pod_says_that_it_is_one() -> Result<()> {
    Region::run(async |region| {
        for k in &region.all {
            k.ok("run web --image=nginx:1.27 --port=80").await?;
            k.ok("wait pod/web --for=condition=Ready --timeout=30s").await?;
            k.shows("logs web", "simulated: nginx:1.27 has no program here").await?;
            k.shows("describe pod web", "aro.dev/simulated: true").await?;
            k.ok("delete pod web --now").await?;
        }
        Ok(())
    })
    .await
}
