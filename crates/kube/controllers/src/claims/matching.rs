//! Which volume fits a claim. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_kube_types::quantity::Quantity;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};

/// How much is asked for, or there.
pub fn amount(list: Option<&BTreeMap<String, Text>>) -> i128 {
    let text = list.and_then(|list| list.get("storage"));
    text.and_then(|text| Quantity::parse(&text.0)).map_or(0, |quantity| quantity.units())
}

pub fn asked(claim: &PersistentVolumeClaim) -> i128 {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    amount(resources.and_then(|resources| resources.requests.as_ref()))
}

pub fn capacity(volume: &PersistentVolume) -> i128 {
    amount(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()))
}

/// The class a claim asks for; `None` if it says nothing, the empty word if it wants none.
pub fn class_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    // The way to say it before there was a field.
    let old = claim
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    old.or_else(|| claim.spec.as_ref()?.storage_class_name.as_ref()).map(String::as_str)
}

/// Whether a volume says that it is for this claim.
pub fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { return false };
    let same_uid = match reference.uid.as_deref() {
        None | Some("") => true,
        uid => uid == claim.metadata.uid.as_deref(),
    };
    same_uid && reference.name == claim.metadata.name && reference.namespace == claim.metadata.namespace
}

/// Why a volume cannot serve a claim. `None`: it can.
pub fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<&'static str> {
    let (Some(has), Some(wants)) = (&volume.spec, &claim.spec) else { return Some("something is missing") };
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
    let modes = has.access_modes.as_deref().unwrap_or_default();
    if capacity(volume) < asked(claim) {
        Some("requested PV is too small")
    } else if has.storage_class_name.as_deref().unwrap_or_default() != class_of(claim).unwrap_or_default() {
        Some("storageClassName does not match")
    } else if mode(&has.volume_mode) != mode(&wants.volume_mode) {
        Some("incompatible volumeMode")
    } else if !wants.access_modes.iter().flatten().all(|wanted| modes.contains(wanted)) {
        Some("incompatible accessMode")
    } else {
        None
    }
}

/// The best of all volumes: one that was made for the claim, or else the smallest free one that fits.
pub fn best<'a>(
    claim: &PersistentVolumeClaim,
    volumes: impl Iterator<Item = &'a Arc<PersistentVolume>>,
) -> Option<Arc<PersistentVolume>> {
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.clone());
    let selector = selector.map(Selector::try_from);
    let mut best: Option<&Arc<PersistentVolume>> = None;
    for volume in volumes {
        if volume.metadata.deletion_timestamp.is_some() || mismatch(volume, claim).is_some() {
            continue;
        }
        if is_for(volume, claim) {
            return Some(volume.clone());
        }
        let free = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none());
        let selected = match &selector {
            None => true,
            Some(Ok(selector)) => selector.matches(volume.labels()),
            Some(Err(_)) => false,
        };
        let key = |volume: &PersistentVolume| (capacity(volume), volume.name_any());
        if free && selected && best.is_none_or(|best| key(volume) < key(best)) {
            best = Some(volume);
        }
    }
    best.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn volume(name: &str, size: &str, more: &Value) -> Arc<PersistentVolume> {
        let mut value = json!({"metadata": {"name": name, "labels": {"disk": name}},
            "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "x"}});
        for (key, part) in more.as_object().unwrap() {
            value["spec"][key] = part.clone();
        }
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn claim(more: &Value) -> PersistentVolumeClaim {
        let mut value = json!({"metadata": {"name": "c", "namespace": "n", "uid": "u"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "x",
                "resources": {"requests": {"storage": "1Gi"}}}});
        for (key, part) in more.as_object().unwrap() {
            value["spec"][key] = part.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    fn chosen(claim: &PersistentVolumeClaim, volumes: &[Arc<PersistentVolume>]) -> Option<String> {
        best(claim, volumes.iter()).map(|volume| volume.name_any())
    }

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let volumes = [
            volume("small", "500Mi", &json!({})),
            volume("large", "10Gi", &json!({})),
            volume("right", "2Gi", &json!({})),
            volume("taken", "1Gi", &json!({"claimRef": {"namespace": "n", "name": "other", "uid": "z"}})),
            volume("other-class", "1Gi", &json!({"storageClassName": "y"})),
            volume("read-only", "1Gi", &json!({"accessModes": ["ReadOnlyMany"]})),
            volume("raw", "1Gi", &json!({"volumeMode": "Block"})),
        ];
        assert_eq!(chosen(&claim(&json!({})), &volumes).as_deref(), Some("right"));
        let picky = claim(&json!({"selector": {"matchLabels": {"disk": "large"}}}));
        assert_eq!(chosen(&picky, &volumes).as_deref(), Some("large"));
        let huge = claim(&json!({"resources": {"requests": {"storage": "1Ti"}}}));
        assert_eq!(chosen(&huge, &volumes), None);
    }

    #[test]
    fn one_that_was_made_for_the_claim_comes_first_but_not_one_for_an_earlier_claim_of_its_name() {
        let free = volume("free", "1Gi", &json!({}));
        let kept = volume("kept", "5Gi", &json!({"claimRef": {"namespace": "n", "name": "c"}}));
        let stale =
            volume("stale", "5Gi", &json!({"claimRef": {"namespace": "n", "name": "c", "uid": "earlier"}}));
        assert_eq!(chosen(&claim(&json!({})), &[free.clone(), kept]).as_deref(), Some("kept"));
        assert_eq!(chosen(&claim(&json!({})), &[stale, free]).as_deref(), Some("free"));
    }
}
