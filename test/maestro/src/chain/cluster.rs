//! A management cluster: our API server as a process, with what agents need.

use std::path::PathBuf;

use anyhow::Result;
use aro_harness::Process;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt as _};

/// A cluster.
pub struct Cluster {
    pub name: String,
    pub client: Client,
    process: Process,
}

impl Cluster {
    /// Starts one, with the definitions of works.
    pub async fn start(name: &str) -> Result<Self> {
        let clusters = format!("[{name:?}]");
        let settings =
            [("kube.clusters", clusters.as_str()), ("kube.nodes", "0"), ("kube.workloads", "false")];
        let process = Process::start_role("kube", &settings).await?;
        let kubeconfig = process.data_dir().join("kube/kubeconfig.yaml");
        let client = aro_kube::of_kubeconfig(&kubeconfig, Some(name)).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in aro_crds::definitions() {
            let apply = PatchParams::apply("test").force();
            definitions.patch(definition.name(), &apply, &Patch::Apply(definition.object())).await?;
        }
        Ok(Self { name: name.to_owned(), client, process })
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.process.data_dir().join("kube/kubeconfig.yaml")
    }

    /// A kubeconfig of this cluster alone.
    pub fn own_kubeconfig(&self) -> PathBuf {
        self.process.data_dir().join("kube/kubeconfig").join(format!("{}.yaml", self.name))
    }

    /// Objects of a kind in a namespace, or cluster-scoped ones.
    pub fn api(&self, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// A config map's data, if it exists.
    pub async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<serde_json::Value>> {
        let found = self.api("v1", "ConfigMap", Some(namespace)).get_opt(name).await?;
        Ok(found.map(|object| object.data["data"].clone()))
    }

    /// Everything of a work with one config map: the map itself, and the records that name the work.
    pub async fn about(&self, namespace: &str, name: &str, id: &str) -> Result<serde_json::Value> {
        let map = self.api("v1", "ConfigMap", Some(namespace)).get_opt(name).await?;
        let records = self.api("work.open-cluster-management.io/v1", "AppliedManifestWork", None);
        let records = records.list(&kube::api::ListParams::default()).await?.items;
        let of_work: Vec<_> = records.iter().filter(|record| record.name_any().ends_with(id)).collect();
        Ok(serde_json::json!({ "map": map, "records": of_work }))
    }

    /// Sets the annotation that is reported of config maps.
    pub async fn turn(&self, namespace: &str, name: &str, turn: &str) -> Result<()> {
        let patch = serde_json::json!({"metadata": {"annotations": {"turn": turn}}});
        let maps = self.api("v1", "ConfigMap", Some(namespace));
        maps.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}
