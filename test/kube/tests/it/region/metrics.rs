//! The metrics of roles that are pods.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use aro_fixtures::{TestClient, wait};

use super::{DEPLOYMENT, Region};

async fn scrape(region: &Region) -> Result<String> {
    let admin = region.process.addr("admin").context("an admin listener")?;
    let reply = TestClient::new(format!("http://{admin}")).get("/metrics").await?.expect(200)?;
    Ok(String::from_utf8(reply.body.to_vec())?)
}

/// What Prometheus insists on: each family is described once, and every sample follows its family.
fn check(text: &str) -> Result<()> {
    let mut families: BTreeSet<&str> = BTreeSet::new();
    let mut samples: BTreeSet<&str> = BTreeSet::new();
    let mut current = "";
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            current = described.split(' ').next().unwrap_or_default();
            ensure!(families.insert(current), "{current} is described twice");
        } else if !line.starts_with('#') {
            ensure!(!current.is_empty() && line.starts_with(current), "{line} stands under {current}");
            let (sample, value) = line.rsplit_once(' ').context("a sample has a value")?;
            value.parse::<f64>().with_context(|| line.to_owned())?;
            ensure!(samples.insert(sample), "{sample} is there twice");
        }
    }
    ensure!(text.ends_with("# EOF\n"), "it has an end");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_front_ends_metrics_carry_their_pod_and_two_replicas_are_valid_together() -> Result<()> {
    Region::run(async |region| {
        region.arm()?.get("/nothing").await?.expect(404)?;
        let one = region.pod().await?;
        let text = scrape(region).await?;
        check(&text)?;
        let counted = |text: &str, pod: &str| {
            text.lines().any(|line| {
                line.starts_with("frontend_http_requests_total{")
                    && line.contains(&format!("pod=\"{pod}\""))
                    && line.contains("namespace=\"aro-hcp\"")
            })
        };
        ensure!(counted(&text, &one), "{text}");
        region.svc.ok(&format!("-n aro-hcp scale {DEPLOYMENT} --replicas=2")).await?;
        region.svc.ok(&format!("-n aro-hcp rollout status {DEPLOYMENT} --timeout=30s")).await?;
        let pods = region.pods().await?;
        ensure!(pods.len() == 2, "{pods:?}");
        // Asked directly, both count.
        for pod in &pods {
            let forward = super::Forward::to(&region.svc, &format!("pod/{pod}")).await?;
            forward.arm().get("/nothing").await?.expect(404)?;
        }
        let text = scrape(region).await?;
        check(&text)?;
        ensure!(pods.iter().all(|pod| counted(&text, pod)), "{text}");
        // A pod's metrics go with it.
        region.svc.ok(&format!("-n aro-hcp scale {DEPLOYMENT} --replicas=1")).await?;
        let left = region.pod().await?;
        wait::until("the metrics of the pod that is gone to go", || async {
            let text = scrape(region).await?;
            check(&text)?;
            ensure!(text.contains(&format!("pod=\"{left}\"")), "{text}");
            let gone =
                pods.iter().filter(|pod| **pod != left).all(|pod| !text.contains(&format!("pod=\"{pod}\"")));
            Ok(gone.then_some(()))
        })
        .await
    })
    .await
}
