//! `kubectl port-forward` to the front end, as the operations guide prints it.

use anyhow::{Result, ensure};
use futures::future::try_join_all;

use super::{Customer, DEPLOYMENT, Forward, Region};

#[tokio::test(flavor = "multi_thread")]
async fn the_front_end_answers_through_port_forward_by_every_name_it_has() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        let pod = format!("pod/{}", region.pod().await?);
        for kubectl in &region.all {
            for target in ["svc/aro-hcp-frontend", DEPLOYMENT, &pod] {
                let mut forward = Forward::to(kubectl, target).await?;
                customer.get(&forward.arm(), "c1").await?;
                ensure!(forward.runs()? && forward.complaints().is_empty(), "{}", forward.complaints());
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_port_forward_carries_many_connections_at_once_and_one_after_the_other() -> Result<()> {
    Region::run(async |region| {
        let customer = Customer::new(&region.arm()?).await?;
        for (round, kubectl) in region.all.iter().enumerate() {
            let mut forward = Forward::to(kubectl, "svc/aro-hcp-frontend").await?;
            let writers = (0..12).map(|writer| {
                let (forward, customer) = (&forward, &customer);
                async move {
                    for index in 0..4 {
                        let cluster = format!("r{round}w{writer}n{index}");
                        // Each has a connection of its own.
                        customer.put(&forward.arm(), &cluster).await?;
                        customer.get(&forward.arm(), &cluster).await?;
                    }
                    anyhow::Ok(())
                }
            });
            try_join_all(writers).await?;
            ensure!(forward.runs()? && forward.complaints().is_empty(), "{}", forward.complaints());
        }
        Ok(())
    })
    .await
}
