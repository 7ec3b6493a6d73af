use super::*;
use serde_json::{Value, json};

fn class(provisioner: &str, mode: &str) -> Arc<StorageClass> {
    Arc::new(
        serde_json::from_value(json!({"metadata": {"name": "local"}, "provisioner": provisioner,
            "reclaimPolicy": "Delete", "volumeBindingMode": mode}))
        .unwrap(),
    )
}

fn claim(merge: &Value) -> PersistentVolumeClaim {
    let mut value = json!({
        "metadata": {"name": "c", "namespace": "n", "uid": "u", "finalizers": [PROTECTION], "annotations": {}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    });
    for (part, fields) in merge.as_object().unwrap() {
        for (key, field) in fields.as_object().unwrap() {
            value[part][key] = field.clone();
        }
    }
    serde_json::from_value(value).unwrap()
}

fn volume(spec: &Value) -> Arc<PersistentVolume> {
    let mut value = json!({"metadata": {"name": "v", "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}});
    for (key, part) in spec.as_object().unwrap() {
        value["spec"][key] = part.clone();
    }
    Arc::new(serde_json::from_value(value).unwrap())
}

fn seen(claim: &PersistentVolumeClaim) -> Seen<'_> {
    Seen {
        claim,
        class: Some(class(PROVISIONER, "Immediate")),
        default_class: Some("local".to_owned()),
        named: None,
        volumes: Vec::new(),
        wanted: false,
        used: false,
        provisions: true,
    }
}

#[test]
fn a_new_claim_gets_a_fitting_volume_or_a_new_one() {
    let claim = claim(&json!({}));
    assert!(matches!(plan(&seen(&claim)), Act::Provision(_)));
    let free = volume(&json!({}));
    assert_eq!(plan(&Seen { volumes: vec![free.clone()], ..seen(&claim) }), Act::Bind(free));
}

#[test]
fn without_a_place_for_volumes_claims_are_bound_and_protected_but_none_is_made() {
    let (waiting, bare) = (claim(&json!({})), claim(&json!({"metadata": {"finalizers": []}})));
    let going = claim(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let place = |claim| Seen { provisions: false, ..seen(claim) };
    assert!(matches!(plan(&place(&waiting)), Act::Wait { warning: false, reason: "FailedBinding", .. }));
    let free = volume(&json!({}));
    assert_eq!(plan(&Seen { volumes: vec![free.clone()], ..place(&waiting) }), Act::Bind(free));
    assert_eq!(plan(&place(&bare)), Act::Protect);
    assert_eq!(plan(&place(&going)), Act::Unprotect);
}

#[test]
fn classes_of_others_are_left_alone_and_so_are_claims_of_no_class() {
    let plain = claim(&json!({}));
    let foreign = Some(class("disk.csi.example", "Immediate"));
    assert_eq!(
        plan(&Seen { class: foreign, volumes: vec![volume(&json!({}))], ..seen(&plain) }),
        Act::LeaveAlone
    );
    let none = claim(&json!({"spec": {"storageClassName": ""}}));
    assert!(matches!(plan(&Seen { class: None, ..seen(&none) }), Act::Wait { reason: "FailedBinding", .. }));
    let missing = Seen { class: None, ..seen(&plain) };
    assert!(matches!(plan(&missing), Act::Wait { reason: "ProvisioningFailed", warning: true, .. }));
    let unsaid = claim(&json!({"spec": {"storageClassName": null}}));
    assert_eq!(plan(&Seen { class: None, ..seen(&unsaid) }), Act::UseClass("local".to_owned()));
    let by_hand = Some(class("kubernetes.io/no-provisioner", "Immediate"));
    assert!(matches!(plan(&Seen { class: by_hand, ..seen(&plain) }), Act::Wait { .. }));
    let block = claim(&json!({"spec": {"volumeMode": "Block"}}));
    assert!(matches!(plan(&seen(&block)), Act::Wait { reason: "ProvisioningFailed", .. }));
}

#[test]
fn a_late_claim_waits_for_a_pod() {
    let claim = claim(&json!({}));
    let late = Seen { class: Some(class(PROVISIONER, "WaitForFirstConsumer")), ..seen(&claim) };
    assert!(matches!(plan(&late), Act::Wait { reason: "WaitForFirstConsumer", warning: false, .. }));
    assert!(matches!(plan(&Seen { wanted: true, ..late }), Act::Provision(_)));
}

#[test]
fn a_claim_that_names_a_volume_gets_that_one_or_none() {
    let claim = claim(&json!({"spec": {"volumeName": "v"}}));
    let with = |named: Option<Arc<PersistentVolume>>| plan(&Seen { named, ..seen(&claim) });
    assert!(matches!(with(None), Act::Wait { .. }));
    assert!(matches!(with(Some(volume(&json!({})))), Act::Bind(_)));
    let taken = volume(&json!({"claimRef": {"namespace": "n", "name": "other", "uid": "z"}}));
    assert!(matches!(with(Some(taken)), Act::Wait { reason: "FailedBinding", .. }));
    let small = volume(&json!({"capacity": {"storage": "1Mi"}}));
    assert!(matches!(with(Some(small)), Act::Wait { reason: "VolumeMismatch", .. }));
}

#[test]
fn a_bound_claim_says_what_it_has_grows_with_its_request_and_tells_when_its_volume_is_lost() {
    let bound = json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": "v"}});
    let mut claim_ = claim(&bound);
    let tied = json!({"claimRef": {"namespace": "n", "name": "c", "uid": "u"}});
    let Act::Status(status) = plan(&Seen { named: Some(volume(&tied)), ..seen(&claim_) }) else { panic!() };
    assert_eq!(
        (status.phase.as_deref(), status.access_modes.as_ref().map(Vec::len)),
        (Some("Bound"), Some(1))
    );
    claim_.status = Some(*status);
    assert_eq!(plan(&Seen { named: Some(volume(&tied)), ..seen(&claim_) }), Act::Rest);
    assert!(matches!(plan(&seen(&claim_)), Act::Lost { reason: "ClaimLost", .. }));
    let stolen = volume(&json!({"claimRef": {"namespace": "n", "name": "c", "uid": "other"}}));
    assert!(matches!(
        plan(&Seen { named: Some(stolen), ..seen(&claim_) }),
        Act::Lost { reason: "ClaimMisbound", .. }
    ));
    assert!(matches!(plan(&Seen { named: Some(volume(&json!({}))), ..seen(&claim_) }), Act::Bind(_)));
    let mut larger = bound.clone();
    larger["spec"]["resources"] = json!({"requests": {"storage": "3Gi"}});
    let larger = claim(&larger);
    assert!(matches!(plan(&Seen { named: Some(volume(&tied)), ..seen(&larger) }), Act::Grow(_)));
}

#[test]
fn a_claim_is_not_deleted_while_a_pod_uses_it() {
    let going = claim(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(plan(&Seen { used: true, ..seen(&going) }), Act::Rest);
    assert_eq!(plan(&seen(&going)), Act::Unprotect);
    let bare = claim(&json!({"metadata": {"finalizers": []}}));
    assert_eq!(plan(&seen(&bare)), Act::Protect);
}

#[test]
fn a_new_volume_is_the_claims_own() {
    let claim = claim(&json!({}));
    let made = new_volume(&claim, &class(PROVISIONER, "Immediate"), "pvc-u", "/data/pvc-u".to_owned());
    assert!(is_for(&made, &claim) && mismatch(&made, &claim).is_none());
    let value = serde_json::to_value(&made).unwrap();
    assert_eq!(value["spec"]["hostPath"], json!({"path": "/data/pvc-u", "type": "DirectoryOrCreate"}));
    assert_eq!(value["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!(value["spec"]["claimRef"]["uid"], "u");
}
