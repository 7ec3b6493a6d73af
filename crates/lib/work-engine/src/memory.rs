//! What the passes of a work remember from one to the next. Lost, it is found out anew.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::Timestamp;
use aro_crds::work::v1::AppliedManifestResourceMeta;
use aro_kube::informer::ObjectKey;
use tokio::time::Instant;

use crate::decide::{Repairs, Written};
use crate::kinds::Kind;
use crate::manifest::Prepared;

/// Names an object of any resource: `plural.version.group`, namespace, name.
pub(crate) type Place = (String, ObjectKey);

/// The place of an object.
pub(crate) fn place(kind: &Kind, key: &ObjectKey) -> Place {
    (format!("{}.{}.{}", kind.api.plural, kind.api.version, kind.api.group), key.clone())
}

/// One object that the work has or had.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) kind: Arc<Kind>,
    pub(crate) key: ObjectKey,
    /// The uid it was last seen with; empty before that.
    pub(crate) uid: String,
    pub(crate) written: Option<Written>,
    pub(crate) repairs: Repairs,
}

impl Object {
    /// What a record says of it.
    pub(crate) fn entry(&self) -> AppliedManifestResourceMeta {
        entry_of(&self.kind, &self.key, &self.uid)
    }
}

/// What is remembered of a work.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The manifests of a revision, once all their resources are known.
    pub(crate) prepared: Option<(i64, Arc<Vec<Prepared>>)>,
    /// Everything that is watched for this work.
    pub(crate) objects: HashMap<Place, Object>,
    /// Which revision was tried first when.
    pub(crate) tried: Option<(i64, Instant)>,
    /// Which revision was applied as a whole, and when.
    pub(crate) applied: Option<(i64, Timestamp)>,
}

/// What a record says of an object.
pub(crate) fn entry_of(kind: &Kind, key: &ObjectKey, uid: &str) -> AppliedManifestResourceMeta {
    AppliedManifestResourceMeta {
        group: kind.api.group.clone(),
        version: kind.api.version.clone(),
        resource: kind.api.plural.clone(),
        name: key.name.clone(),
        namespace: key.namespace.clone(),
        uid: uid.to_owned(),
    }
}
