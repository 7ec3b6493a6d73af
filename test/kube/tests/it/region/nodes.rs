//! Looking at a region and its nodes, and taking nodes out of service.

use anyhow::{Result, ensure};
use aro_fixtures::wait;

use super::{Customer, DEPLOYMENT, OF_FRONTEND, Region};

#[tokio::test(flavor = "multi_thread")]
async fn what_kubectl_shows_of_a_region_is_what_is_there() -> Result<()> {
    Region::run(async |region| {
        for k in &region.all {
            let pod = region.pod().await?;
            k.shows("get nodes", "svc-node-0   Ready").await?;
            k.shows("wait node --all --for=condition=Ready --timeout=30s", "condition met").await?;
            k.shows("describe node svc-node-0", &pod).await?;
            k.shows(&format!("-n aro-hcp wait pod {OF_FRONTEND} --for=condition=Ready --timeout=30s"), &pod)
                .await?;
            k.ok(&format!("-n aro-hcp wait {DEPLOYMENT} --for=condition=Available --timeout=30s")).await?;
            k.shows("-n aro-hcp get pods -o wide", "svc-node-0").await?;
            let address = k.ok(&format!("-n aro-hcp get pod {pod} -o jsonpath={{.status.podIP}}")).await?;
            k.shows("-n aro-hcp get endpointslices", &address).await?;
            k.shows("-n aro-hcp get endpoints aro-hcp-frontend", &format!("{address}:8443")).await?;
            k.shows(&format!("-n aro-hcp describe {DEPLOYMENT}"), "NewReplicaSet:   aro-hcp-frontend-")
                .await?;
            k.shows(&format!("-n aro-hcp describe pod {pod}"), "Started container aro-hcp-frontend").await?;
            let events = k.ok("-n aro-hcp get events").await?;
            for reason in ["ScalingReplicaSet", "SuccessfulCreate", "Scheduled", "Started"] {
                ensure!(events.contains(reason), "{reason} is in {events}");
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordoned_node_takes_no_new_pods_and_says_so() -> Result<()> {
    Region::run(async |region| {
        for k in &region.all {
            k.shows("cordon svc-node-0", "cordoned").await?;
            k.shows("get nodes", "Ready,SchedulingDisabled").await?;
            k.ok("run waits --image=x").await?;
            let why = "0/1 nodes are available: 1 node(s) were unschedulable";
            k.until(
                "get pod waits -o 'jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}'",
                why,
            )
            .await?;
            k.until("get events --field-selector involvedObject.name=waits", "FailedScheduling").await?;
            k.shows("get pod waits", "Pending").await?;
            // What runs there goes on.
            region.arm()?.get("/healthz").await?.expect(200)?;
            k.ok("uncordon svc-node-0").await?;
            k.ok("wait pod/waits --for=condition=Ready --timeout=30s").await?;
            k.ok("delete pod waits --now").await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_is_empty_and_another_one_serves() -> Result<()> {
    let Some(region) = Region::start_with(&[("kube.nodes", "2")]).await? else { return Ok(()) };
    let customer = Customer::new(&region.arm()?).await?;
    for k in &region.all {
        let pod = region.pod().await?;
        let node = k.ok(&format!("-n aro-hcp get pod {pod} -o jsonpath={{.spec.nodeName}}")).await?;
        k.shows(&format!("drain {node} --timeout=30s"), "drained").await?;
        k.ok(&format!("-n aro-hcp rollout status {DEPLOYMENT} --timeout=30s")).await?;
        let moved = region.pod().await?;
        ensure!(moved != pod, "it was evicted");
        let now = k.ok(&format!("-n aro-hcp get pod {moved} -o jsonpath={{.spec.nodeName}}")).await?;
        ensure!(now != node, "it went elsewhere");
        wait::until("the other node to serve", || async {
            Ok(customer.get(&region.arm()?, "c1").await.ok())
        })
        .await?;
        k.ok(&format!("uncordon {node}")).await?;
        // Deleting a pod is how one asks for another.
        k.shows(&format!("-n aro-hcp delete pod {moved}"), "deleted").await?;
        k.ok(&format!("-n aro-hcp rollout status {DEPLOYMENT} --timeout=30s")).await?;
        ensure!(region.pod().await? != moved);
    }
    Ok(())
}
