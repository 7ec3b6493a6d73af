//! Rolling the front end out and back with kubectl.

use std::convert::Infallible;

use anyhow::{Result, ensure};
use aro_fixtures::wait;

use super::{Customer, DEPLOYMENT, OF_FRONTEND, Region};

async fn rolled_out(region: &Region) -> Result<()> {
    let status = format!("-n aro-hcp rollout status {DEPLOYMENT} --timeout=30s");
    region.svc.shows(&status, "successfully rolled out").await.map(drop)
}

/// The location the front end was configured with, as whoever answers now says.
async fn location(region: &Region) -> Result<String> {
    Ok(String::from_utf8(region.arm()?.get("/location").await?.expect(200)?.body.to_vec())?)
}

async fn until_at(region: &Region, wanted: &str) -> Result<()> {
    wait::until(&format!("the front end to be in {wanted}"), || async {
        Ok((location(region).await? == wanted).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_variable_reaches_the_role_and_can_be_taken_back() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        let k = &region.svc;
        let first = region.pod().await?;
        ensure!(location(region).await? == "uksouth");
        k.shows(&format!("-n aro-hcp set env {DEPLOYMENT} ARO_FRONTEND__LOCATION=westus"), "env updated")
            .await?;
        rolled_out(region).await?;
        until_at(region, "westus").await?;
        ensure!(region.pod().await? != first, "another pod does it");
        k.shows(&format!("-n aro-hcp rollout history {DEPLOYMENT}"), "\n2 ").await?;
        k.shows(&format!("-n aro-hcp rollout history {DEPLOYMENT} --revision=2"), "ARO_FRONTEND__LOCATION:")
            .await?;
        k.shows(&format!("-n aro-hcp rollout undo {DEPLOYMENT}"), "rolled back").await?;
        rolled_out(region).await?;
        until_at(region, "uksouth").await?;
        let before = region.pod().await?;
        k.shows(&format!("-n aro-hcp rollout restart {DEPLOYMENT}"), "restarted").await?;
        rolled_out(region).await?;
        ensure!(region.pod().await? != before, "a restart is another pod");
        customer.get(&region.arm()?, "c1").await
    })
    .await
}

async fn ask_for_ever(region: &Region, customer: &Customer) -> Result<Infallible> {
    loop {
        // A connection of its own each time: a kept one would only know the old pod.
        customer.get(&region.arm()?, "c1").await?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_notices_a_rollout() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        let rolling = async {
            for _ in 0..3 {
                // kubectl wants a second between two of them.
                region.svc.until(&format!("-n aro-hcp rollout restart {DEPLOYMENT}"), "restarted").await?;
                rolled_out(region).await?;
                region.pod().await?;
            }
            anyhow::Ok(())
        };
        tokio::select! {
            failed = ask_for_ever(region, &customer) => failed.map(|never| match never {}),
            rolled = rolling => rolled,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_variable_is_explained_and_the_old_pod_keeps_serving() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        let k = &region.svc;
        let good = region.pod().await?;
        k.ok(&format!("-n aro-hcp set env {DEPLOYMENT} ARO_FRONTEND__MAX_CONNECTIONS=nonsense")).await?;
        k.until(&format!("-n aro-hcp get pods {OF_FRONTEND}"), "CrashLoopBackOff").await?;
        let pods = region.pods().await?;
        ensure!(pods.len() == 2 && pods.contains(&good), "{pods:?}");
        let bad = pods.into_iter().find(|pod| *pod != good).unwrap_or_default();
        let complaint = "ARO_FRONTEND__MAX_CONNECTIONS";
        k.until(&format!("-n aro-hcp describe pod {bad}"), complaint).await?;
        k.shows(&format!("-n aro-hcp describe pod {bad}"), "CrashLoopBackOff").await?;
        k.until(&format!("-n aro-hcp get events --field-selector involvedObject.name={bad}"), "BackOff")
            .await?;
        k.shows(&format!("-n aro-hcp logs {bad} --previous"), complaint).await?;
        k.fails(&format!("-n aro-hcp rollout status {DEPLOYMENT} --timeout=1s"), "timed out").await?;
        customer.get(&region.arm()?, "c1").await?;
        customer.put(&region.arm()?, "c2").await?;
        k.ok(&format!("-n aro-hcp rollout undo {DEPLOYMENT}")).await?;
        rolled_out(region).await?;
        ensure!(region.pod().await? == good, "it was never replaced");
        customer.get(&region.arm()?, "c2").await
    })
    .await
}
