//! A management cluster runs what it is given, and has it after a restart.

use anyhow::{Result, ensure};

use super::Region;

const MANIFESTS: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 4
  parallelism: 2
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_management_cluster_runs_workloads_and_keeps_their_data() -> Result<()> {
    Region::run(async |region| {
        let k = &region.mgmt;
        k.apply(MANIFESTS).await?;
        k.ok("rollout status deploy/web --timeout=30s").await?;
        k.ok("rollout status sts/db --timeout=30s").await?;
        k.ok("wait job/once --for=condition=Complete --timeout=30s").await?;
        k.shows("get job once -o jsonpath={.status.succeeded}", "4").await?;
        k.shows("get pvc data-db-0", "Bound").await?;
        // The other cluster of the same kubeconfig knows nothing of it.
        region.svc.fails("get deploy web", "not found").await?;
        region.svc.shows("-n aro-hcp get deploy", "aro-hcp-frontend   1/1").await?;

        let volume = k.ok("get pvc data-db-0 -o jsonpath={.spec.volumeName}").await?;
        let path = k
            .ok(&format!("get pv {volume} -o 'jsonpath={{.spec.local.path}}{{.spec.hostPath.path}}'"))
            .await?;
        ensure!(std::path::Path::new(&path).starts_with(region.process.data_dir()), "{path}");
        std::fs::write(format!("{path}/kept"), "precious")?;
        let before = k.ok("get pods -o 'jsonpath={range .items[*]}{.metadata.uid}{\"\\n\"}{end}'").await?;
        ensure!(before.lines().count() == 9, "{before}");
        ensure!(region.process.interrupt()?.success(), "a clean stop");
        region.process.start_again().await?;
        let k = &region.mgmt;
        let after = k.ok("get pods -o 'jsonpath={range .items[*]}{.metadata.uid}{\"\\n\"}{end}'").await?;
        ensure!(before == after, "simulated pods are left as they are:\n{before}\n{after}");
        ensure!(std::fs::read_to_string(format!("{path}/kept"))? == "precious");
        // It goes on: pods that go are replaced, and a claim stays with its ordinal.
        k.ok("delete pod db-0 --now").await?;
        k.ok("rollout status sts/db --timeout=30s").await?;
        k.shows("get pvc data-db-0 -o jsonpath={.spec.volumeName}", &volume).await?;
        k.ok("scale deploy/web --replicas=1").await?;
        k.until("get deploy web", "1/1").await?;
        Ok(())
    })
    .await
}
