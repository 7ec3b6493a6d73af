//! The storage class `local`: created once, unless there is one.

use aro_control::{Outcome, Reconcile};
use aro_kube::informer::ObjectKey;
use aro_runtime::Fault;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::directory::PROVISIONER;
use crate::context::{Context, is_conflict, refused};

/// Its name.
pub const LOCAL: &str = "local";
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

pub struct Classes {
    pub context: Context,
}

/// Whether claims that ask for no class get this one.
pub fn is_default(class: &StorageClass) -> bool {
    class.annotations().get(IS_DEFAULT).is_some_and(|value| value == "true")
}

impl Reconcile for Classes {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "local-storage-class";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        let cache = self.context.caches.storage_classes.cache();
        if cache.get(key).is_some() {
            return Ok(Outcome::Settled);
        }
        // Two defaults would be one too many.
        let first = !cache.all().iter().any(|class| is_default(class));
        let class = json!({
            "metadata": {"name": key.name, "annotations": {IS_DEFAULT: first.to_string()}},
            "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": true,
        });
        let class: StorageClass =
            serde_json::from_value(class).map_err(|error| Fault::caused("write a storage class", error))?;
        let api: Api<StorageClass> = Api::all(self.context.client.clone());
        match api.create(&PostParams::default(), &class).await {
            Ok(made) => drop(cache.wrote(made)),
            Err(error) if is_conflict(&error) => {}
            Err(error) => return Err(refused("create the storage class `local`")(error)),
        }
        Ok(Outcome::Settled)
    }
}
