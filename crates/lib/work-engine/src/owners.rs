//! Who owns an object: references to records.
//!
//! All works of all agents apply under one field manager, and applying takes away what the manager had set before and does not
//! set again. So every apply names the other records, too, that are known to own the object.

use aro_crds::work::v1::AppliedManifestWork;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::live::Live;

/// A record as an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) name: String,
    pub(crate) uid: String,
}

const KIND: &str = "AppliedManifestWork";

impl Owner {
    pub(crate) fn of(record: &AppliedManifestWork) -> Self {
        Self { name: record.name_any(), uid: record.uid().unwrap_or_default() }
    }

    pub(crate) fn reference(&self) -> Value {
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": KIND, "name": self.name, "uid": self.uid,
        })
    }

    /// Whether it owns the object.
    pub(crate) fn owns(&self, live: &Live) -> bool {
        live.owners().iter().any(|owner| owner["uid"] == self.uid.as_str())
    }
}

/// The references an object is to have: those of its manifest, of other records that own it now, and ours if it is to be
/// ours.
pub(crate) fn references(manifest: &Value, live: Option<&Live>, owner: &Owner, owned: bool) -> Vec<Value> {
    let mut all: Vec<Value> =
        manifest["metadata"]["ownerReferences"].as_array().map_or_else(Vec::new, Clone::clone);
    let others = live
        .map_or(&[][..], Live::owners)
        .iter()
        .filter(|reference| reference["kind"] == KIND && reference["uid"] != owner.uid.as_str());
    for other in others {
        if all.iter().all(|known| known["uid"] != other["uid"]) {
            all.push(other.clone());
        }
    }
    if owned {
        all.push(owner.reference());
    }
    all
}

/// What is to be done about an object that a work no longer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It is not ours, or it is gone.
    Forget,
    /// Others own it, too, or it is to stay: our reference goes.
    Disown,
    /// It goes.
    Delete,
    /// It is on its way.
    Wait,
}

/// What is to be done about an object. Whose it is, its references say: it may be another one than was noted, made again by
/// a process that was killed before it noted that.
pub(crate) fn plan_removal(live: Option<&Live>, owner: &Owner, stays: bool) -> Removal {
    let Some(live) = live else { return Removal::Forget };
    if !owner.owns(live) {
        return Removal::Forget;
    }
    let others =
        live.owners().iter().any(|other| other["uid"] != owner.uid.as_str() && other["kind"] == KIND);
    if stays || others {
        return Removal::Disown;
    }
    if live.is_deleting() { Removal::Wait } else { Removal::Delete }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str) -> Owner {
        Owner { name: format!("record-{uid}"), uid: uid.to_owned() }
    }

    fn object(uid: &str, owners: &[Value], deleting: bool) -> Live {
        let mut value = json!({"metadata": {"name": "a", "uid": uid, "ownerReferences": owners}});
        if deleting {
            value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Live::new(value)
    }

    #[test]
    fn applying_names_other_records_and_leaves_other_owners_alone() {
        let (ours, theirs) = (owner("r1").reference(), owner("r2").reference());
        let controller = json!({"kind": "ReplicaSet", "uid": "rs", "name": "rs", "apiVersion": "apps/v1"});
        let manifest = json!({"metadata": {"ownerReferences": [{"uid": "m", "kind": "Pod"}]}});
        let live = object("u", &[theirs.clone(), ours.clone(), controller], false);
        let named = references(&manifest, Some(&live), &owner("r1"), true);
        assert_eq!(named, [json!({"uid": "m", "kind": "Pod"}), theirs.clone(), ours.clone()]);
        assert_eq!(references(&json!({}), Some(&live), &owner("r1"), false), [theirs]);
        assert_eq!(references(&json!({}), None, &owner("r1"), true), [ours]);
    }

    #[test]
    fn only_what_is_ours_alone_is_deleted() {
        let (ours, theirs) = (owner("r1").reference(), owner("r2").reference());
        let user = json!({"kind": "ReplicaSet", "uid": "rs"});
        for (live, stays, expected) in [
            (None, false, Removal::Forget),
            (Some(object("u", std::slice::from_ref(&ours), false)), false, Removal::Delete),
            (Some(object("u", &[], false)), false, Removal::Forget),
            (Some(object("u", std::slice::from_ref(&theirs), false)), false, Removal::Forget),
            (Some(object("u", &[ours.clone(), theirs.clone()], false)), false, Removal::Disown),
            (Some(object("u", &[ours.clone(), user], false)), false, Removal::Delete),
            (Some(object("u", std::slice::from_ref(&ours), false)), true, Removal::Disown),
            (Some(object("u", std::slice::from_ref(&ours), true)), false, Removal::Wait),
        ] {
            assert_eq!(plan_removal(live.as_ref(), &owner("r1"), stays), expected, "{live:?} {stays}");
        }
    }
}
