//! `kill -9` while workloads come, change and go: in the end exactly what was asked for is there, and nothing else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use aro_fixtures::wait;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{client, whole_region};

/// Where each kill falls, in calls that were answered since the last one. Another seed is another test.
const SEED: u64 = 0x5eed;
const ROUNDS: usize = 5;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn template(app: &str, restart: &str, script: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}, "annotations": {"aro.dev/simulate": script}},
        "spec": {"restartPolicy": restart, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "x"}]}})
}

fn deployment(name: &str, replicas: u64) -> Value {
    let script = r#"{"startDelay": "5ms", "readyDelay": "5ms"}"#;
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": template(name, "Always", script)}})
}

fn stateful_set(name: &str, replicas: u64) -> Value {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let mut template = template(name, "Always", r#"{"readyDelay": "5ms"}"#);
    template["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "serviceName": name,
        "selector": {"matchLabels": {"app": name}}, "volumeClaimTemplates": [claim],
        "template": template}})
}

fn job(name: &str, completions: u64) -> Value {
    json!({"metadata": {"name": name}, "spec": {"completions": completions, "parallelism": 2,
        "template": template(name, "Never", r#"{"runFor": "20ms"}"#)}})
}

/// Makes, scales and deletes objects of one kind until nobody answers.
async fn storm<K>(
    client: Client,
    kind: &str,
    make: fn(&str, u64) -> Value,
    scales: bool,
    mut dice: Dice,
    answered: &AtomicUsize,
) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let api: Api<K> = Api::namespaced(client, "default");
    loop {
        let name = format!("{kind}-{}", dice.roll(5));
        let number = dice.roll(5);
        let done = match dice.roll(5) {
            0 => {
                let how =
                    if dice.roll(2) == 0 { DeleteParams::background() } else { DeleteParams::foreground() };
                api.delete(&name, &how).await.map(drop)
            }
            1 | 2 if scales => {
                let patch = json!({"spec": {"replicas": number}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
            }
            _ => {
                let made = serde_json::from_value(make(&name, number.max(1)))?;
                api.create(&PostParams::default(), &made).await.map(drop)
            }
        };
        match done {
            Ok(()) => {}
            // There already, or not there.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(kube::Error::Api(status)) => bail!("{kind} {name}: {status:?}"),
            // It was killed.
            Err(_) => return Ok(()),
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Everything there is in a cluster.
struct Found {
    deployments: Vec<Deployment>,
    replica_sets: Vec<ReplicaSet>,
    stateful_sets: Vec<StatefulSet>,
    jobs: Vec<Job>,
    pods: Vec<Pod>,
    claims: Vec<PersistentVolumeClaim>,
    nodes: HashSet<String>,
}

impl Found {
    async fn look(client: &Client) -> Result<Self> {
        async fn list<K>(client: &Client) -> Result<Vec<K>>
        where
            K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
        {
            Ok(Api::all(client.clone()).list(&ListParams::default()).await?.items)
        }
        Ok(Self {
            deployments: list(client).await?,
            replica_sets: list(client).await?,
            stateful_sets: list(client).await?,
            jobs: list(client).await?,
            claims: list(client).await?,
            nodes: list::<Node>(client).await?.iter().map(ResourceExt::name_any).collect(),
            // Last: what a pod belongs to was there before it.
            pods: list(client).await?,
        })
    }

    fn pods_of(&self, owner: &impl ResourceExt) -> Vec<&Pod> {
        let uid = owner.uid();
        { self.pods.iter() }
            .filter(|pod| pod.owner_references().iter().any(|one| Some(&one.uid) == uid.as_ref()))
            .collect()
    }

    /// Says what is not as it should be.
    fn check(&self) -> Result<()> {
        for pod in &self.pods {
            let name = pod.name_any();
            ensure!(pod.metadata.deletion_timestamp.is_none(), "{name} is still going");
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
            ensure!(self.nodes.contains(&node), "{name} is on the node {node:?}, which is not there");
        }
        let uids = |objects: Vec<Option<String>>| objects.into_iter().flatten();
        let owners: BTreeSet<String> = uids(self.replica_sets.iter().map(ResourceExt::uid).collect())
            .chain(uids(self.stateful_sets.iter().map(ResourceExt::uid).collect()))
            .chain(uids(self.jobs.iter().map(ResourceExt::uid).collect()))
            .collect();
        for pod in &self.pods {
            let owner = pod.owner_references().first().context("a pod has an owner")?;
            ensure!(
                owners.contains(&owner.uid),
                "{} belongs to {}, which is gone",
                pod.name_any(),
                owner.name
            );
        }
        for set in &self.replica_sets {
            let owner = set.owner_references().first().context("a replica set has an owner")?;
            let lives = self.deployments.iter().any(|one| one.uid().as_ref() == Some(&owner.uid));
            ensure!(lives, "{} belongs to {}, which is gone", set.name_any(), owner.name);
        }
        self.deployments.iter().try_for_each(|one| self.check_deployment(one))?;
        self.stateful_sets.iter().try_for_each(|one| self.check_stateful_set(one))?;
        self.jobs.iter().try_for_each(|one| self.check_job(one))
    }

    fn check_deployment(&self, deployment: &Deployment) -> Result<()> {
        let name = deployment.name_any();
        let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let uid = deployment.uid();
        let sets = self
            .replica_sets
            .iter()
            .filter(|set| set.owner_references().first().map(|one| &one.uid) == uid.as_ref());
        let pods: usize = sets.map(|set| self.pods_of(set).len()).sum();
        ensure!(pods == usize::try_from(wanted)?, "{name} wants {wanted} pods and has {pods}");
        let status = deployment.status.clone().unwrap_or_default();
        ensure!(status.observed_generation == deployment.metadata.generation, "{name} was not looked at");
        ensure!(status.available_replicas.unwrap_or_default() == wanted, "{name}: {status:?}");
        Ok(())
    }

    fn check_stateful_set(&self, set: &StatefulSet) -> Result<()> {
        let name = set.name_any();
        let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let expected: BTreeSet<String> = (0..wanted).map(|ordinal| format!("{name}-{ordinal}")).collect();
        let pods: Vec<String> = self.pods_of(set).into_iter().map(ResourceExt::name_any).collect();
        ensure!(
            pods.iter().cloned().collect::<BTreeSet<_>>() == expected,
            "{name} wants {expected:?} and has {pods:?}"
        );
        for pod in expected {
            let claim = self.claims.iter().find(|claim| claim.name_any() == format!("data-{pod}"));
            let claim = claim.with_context(|| format!("{pod} has its claim"))?;
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            ensure!(phase == Some("Bound"), "the claim of {pod} is {phase:?}");
        }
        let ready = set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default();
        ensure!(ready == wanted, "{name}: {ready} of {wanted} are ready");
        Ok(())
    }

    fn check_job(&self, job: &Job) -> Result<()> {
        let name = job.name_any();
        let wanted = job.spec.as_ref().and_then(|spec| spec.completions).unwrap_or(1);
        let status = job.status.clone().unwrap_or_default();
        let done =
            status.conditions.iter().flatten().any(|one| one.type_ == "Complete" && one.status == "True");
        ensure!(done && status.succeeded == Some(wanted), "{name} wants {wanted} completions: {status:?}");
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.pods_of(job) {
            let phase = pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
            *ends.entry(phase).or_default() += 1;
        }
        let expected = BTreeMap::from([("Succeeded".to_owned(), usize::try_from(wanted)?)]);
        ensure!(ends == expected, "{name} wants {wanted} completions and its pods are {ends:?}");
        Ok(())
    }
}

/// Files of pods that are not there.
fn leftovers(pods: &Path, uids: &HashSet<String>) -> Vec<String> {
    let entries = std::fs::read_dir(pods).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !uids.contains(name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_are_exactly_as_asked_for_after_kill_9_in_a_storm() -> Result<()> {
    let mut region = whole_region(&[("kube.nodes", "2")]).await?;
    let mut dice = Dice(SEED);
    for round in 0..ROUNDS {
        let answered = Arc::new(AtomicUsize::new(0));
        let mut storms = tokio::task::JoinSet::new();
        for writer in 0..3 {
            let (client, answered) = (client(&region, "mgmt-1").await?, answered.clone());
            let dice = Dice(SEED ^ (round * 3 + writer + 1) as u64);
            storms.spawn(async move {
                match writer {
                    0 => storm::<Deployment>(client, "web", deployment, true, dice, &answered).await,
                    1 => storm::<StatefulSet>(client, "db", stateful_set, true, dice, &answered).await,
                    _ => storm::<Job>(client, "once", job, false, dice, &answered).await,
                }
            });
        }
        let enough = 20 + usize::try_from(dice.roll(150))?;
        wait::until("the storm to be in full swing", || async {
            Ok((answered.load(Ordering::Relaxed) >= enough).then_some(()))
        })
        .await?;
        region.kill()?;
        while let Some(storm) = storms.join_next().await {
            storm??;
        }
        region.start_again().await.with_context(|| format!("after round {round}"))?;
    }
    for cluster in ["mgmt-1", "svc"] {
        let client = client(&region, cluster).await?;
        let last = RefCell::new(String::new());
        let settled = wait::until("everything to be as it was asked for", || {
            let (client, last) = (client.clone(), &last);
            let pods = region.data_dir().join("kube").join("pods").join(cluster);
            let checked = async move {
                let found = Found::look(&client).await?;
                let uids: HashSet<String> = found.pods.iter().filter_map(ResourceExt::uid).collect();
                found.check()?;
                let left = leftovers(&pods, &uids);
                ensure!(left.is_empty(), "files of pods that are gone: {left:?}");
                anyhow::Ok(())
            };
            async move {
                match checked.await {
                    Ok(()) => Ok(Some(())),
                    Err(error) => {
                        *last.borrow_mut() = format!("{error:#}");
                        Ok(None)
                    }
                }
            }
        })
        .await;
        settled.with_context(|| format!("{cluster}: {}\n{}", last.borrow(), region.log_text()))?;
    }
    Ok(())
}
