//! Replicas of the front end: none, one, two; and what stays when the process does not.

use anyhow::{Context as _, Result, ensure};
use aro_fixtures::wait;

use super::{Customer, DEPLOYMENT, Forward, OF_FRONTEND, Region};

#[tokio::test(flavor = "multi_thread")]
async fn without_replicas_nobody_answers_and_nothing_is_lost() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        let k = &region.svc;
        let forward = Forward::to(k, "svc/aro-hcp-frontend").await?;
        customer.get(&forward.arm(), "c1").await?;
        k.shows(&format!("-n aro-hcp scale {DEPLOYMENT} --replicas=0"), "scaled").await?;
        k.ok(&format!("-n aro-hcp wait --for=delete pod {OF_FRONTEND} --timeout=30s")).await?;
        ensure!(region.arm()?.get("/healthz").await.is_err(), "the debug port leads nowhere");
        ensure!(forward.arm().get("/healthz").await.is_err(), "the forwarded port leads nowhere");
        let refused = format!("-n aro-hcp port-forward {DEPLOYMENT} :8443 --pod-running-timeout=1s");
        k.fails(&refused, "timed out waiting for the condition").await?;

        // The scale is the operator's: a new process brings back the region as it was left.
        ensure!(region.process.interrupt()?.success(), "a clean stop");
        region.process.start_again().await?;
        let k = &region.svc;
        k.shows(&format!("-n aro-hcp get {DEPLOYMENT} -o jsonpath={{.spec.replicas}}"), "0").await?;
        ensure!(region.pods().await?.is_empty(), "nobody came back");
        ensure!(region.arm()?.get("/healthz").await.is_err(), "the debug port still leads nowhere");

        k.ok(&format!("-n aro-hcp scale {DEPLOYMENT} --replicas=1")).await?;
        k.shows(&format!("-n aro-hcp rollout status {DEPLOYMENT} --timeout=30s"), "successfully rolled out")
            .await?;
        let arm = region.arm()?;
        wait::until("the Service to know its pod", || async { Ok(arm.get("/healthz").await.ok()) }).await?;
        customer.get(&region.arm()?, "c1").await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_was_killed_answers_as_soon_as_it_says_so() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        let before = region.pod().await?;
        for round in 1..=3 {
            region.process.kill()?;
            region.process.start_again().await?;
            customer.get(&region.arm()?, "c1").await.context("the first call")?;
            // The pod is the same one; its container was started again.
            let template = "{.metadata.name} {.status.containerStatuses[0].restartCount}";
            let line = format!(
                "-n aro-hcp get pods {OF_FRONTEND} -o 'jsonpath={{range .items[*]}}{template}{{end}}'"
            );
            region.svc.shows(&line, &format!("{before} {round}")).await?;
        }
        let pod = region.pod().await?;
        region
            .svc
            .shows(&format!("-n aro-hcp describe pod {pod}"), "the process that ran it has ended")
            .await?;
        Ok(())
    })
    .await
}
