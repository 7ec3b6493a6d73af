//! Rules across the members of a node pool.

mod kubernetes;

use super::{DiskType, Label, NodePool, NodePoolProperties, Taint, vm_sizes};
use crate::hcp::cluster::check_channel_group;
use crate::hcp::openshift_version::Release;
use crate::hcp::resource::Context;
use crate::schema::pattern;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

/// The oldest release a node pool can run.
const MIN_RELEASE: Release = Release::new(4, 20, 8);
/// How many nodes a pool can have when it is not bound to a zone.
const MAX_NODES: i32 = 200;
const MAX_MANAGED_DISK: i32 = 4095;
const MAX_EPHEMERAL_DISK: i32 = 2040;
const MAX_ENCRYPTION_SET_NAME: usize = 80;

const FORBIDDEN_LABELS: [&str; 2] = ["node-role.kubernetes.io/master", "node-role.kubernetes.io/worker"];
const MACHINE_LABELS: [&str; 2] =
    ["machine.openshift.io/cluster-api-machine-role", "machine.openshift.io/cluster-api-machine-type"];
const FORBIDDEN_MACHINE_ROLES: [&str; 2] = ["master", "infra"];

pattern!(
    ENCRYPTION_SET_NAME,
    "^[a-zA-Z0-9_-]+$",
    "the name of a disk encryption set may hold only letters, digits, '_' and '-'"
);

pub fn check(new: &NodePool, old: Option<&NodePool>, cx: &Context<'_>, problems: &mut Problems) {
    let path = FieldPath::new("properties");
    check_version(&new.properties, old.map(|old| &old.properties), cx, &path.child("version"), problems);
    check_platform(&new.properties, old.is_none(), &path.child("platform"), problems);
    check_size(&new.properties, &path, problems);
    check_labels(&new.properties.labels, &path.child("labels"), problems);
    check_taints(&new.properties.taints, &path.child("taints"), problems);
}

fn check_version(
    new: &NodePoolProperties,
    old: Option<&NodePoolProperties>,
    cx: &Context<'_>,
    path: &FieldPath,
    problems: &mut Problems,
) {
    if old.is_none_or(|old| old.version.channel_group != new.version.channel_group) {
        check_channel_group(
            &new.version.channel_group,
            cx.experimental,
            &path.child("channelGroup"),
            problems,
        );
    }
    let Some(id) = &new.version.id else { return };
    if old.is_some_and(|old| old.version.id.as_ref() == Some(id)) {
        return;
    }
    let at = path.child("id");
    match Release::parse(id) {
        Some(release) if !release.has_build() => {
            if release < MIN_RELEASE && !cx.experimental {
                problems.push(FieldError::invalid(&at, id, format!("must be at least {MIN_RELEASE}")));
            }
        }
        _ => problems.push(FieldError::invalid(&at, id, "must be specified as MAJOR.MINOR.PATCH")),
    }
}

fn check_platform(new: &NodePoolProperties, creating: bool, path: &FieldPath, problems: &mut Problems) {
    let platform = &new.platform;
    // A size that is no longer offered goes on serving the pools that have it.
    if creating && !platform.vm_size.is_empty() && !vm_sizes::is_offered(&platform.vm_size) {
        problems.push(FieldError::unsupported(&path.child("vmSize"), &platform.vm_size, &vm_sizes::VM_SIZES));
    }
    let disk = &platform.os_disk;
    let path = path.child("osDisk");
    let largest = match disk.disk_type {
        DiskType::Managed => MAX_MANAGED_DISK,
        DiskType::Ephemeral => MAX_EPHEMERAL_DISK,
    };
    if disk.size_gib > largest {
        let why = format!("must be less than or equal to {largest}");
        problems.push(FieldError::invalid_number(&path.child("sizeGiB"), disk.size_gib, why));
    }
    if let Some(id) = &disk.encryption_set_id {
        let at = path.child("encryptionSetId");
        if id.name().len() > MAX_ENCRYPTION_SET_NAME {
            problems.push(FieldError::too_long(&at, MAX_ENCRYPTION_SET_NAME));
        } else if !ENCRYPTION_SET_NAME.matches(id.name()) {
            problems.push(FieldError::invalid(&at, id.as_str(), ENCRYPTION_SET_NAME.why));
        }
    }
}

/// How many nodes, and who repairs them.
fn check_size(new: &NodePoolProperties, path: &FieldPath, problems: &mut Problems) {
    let zoned = new.platform.availability_zone.is_some();
    let limit = |value: i32, at: &FieldPath, problems: &mut Problems| {
        if !zoned && value > MAX_NODES {
            let why = format!("must be less than or equal to {MAX_NODES}");
            problems.push(FieldError::invalid_number(at, value, why));
        }
    };
    let at = path.child("replicas");
    limit(new.replicas, &at, problems);
    if let Some(scaling) = &new.auto_scaling {
        if new.replicas != 0 {
            let why = "must be 0 when autoScaling is set";
            problems.push(FieldError::invalid_number(&at, new.replicas, why));
        }
        let path = path.child("autoScaling");
        limit(scaling.min, &path.child("min"), problems);
        limit(scaling.max, &path.child("max"), problems);
        if scaling.max < scaling.min {
            let why = format!("must be greater than or equal to {}", scaling.min);
            problems.push(FieldError::invalid_number(&path.child("max"), scaling.max, why));
        }
    }
    if new.platform.os_disk.disk_type == DiskType::Ephemeral && !new.auto_repair {
        let why = "must be true when platform.osDisk.diskType is \"Ephemeral\"";
        problems.push(FieldError::invalid_number(&path.child("autoRepair"), false, why));
    }
}

fn check_labels(labels: &[Label], path: &FieldPath, problems: &mut Problems) {
    for (index, label) in labels.iter().enumerate() {
        let path = path.index(index);
        let value = label.value.as_deref().unwrap_or_default();
        check_key(&label.key, &path.child("key"), problems);
        if let Some(why) = kubernetes::wrong_label_value(value) {
            problems.push(FieldError::invalid(&path.child("value"), value, why));
        }
        if FORBIDDEN_LABELS.contains(&label.key.as_str()) {
            problems.push(FieldError::invalid(&path.child("key"), &label.key, "is reserved for the service"));
        }
        if MACHINE_LABELS.contains(&label.key.as_str()) && FORBIDDEN_MACHINE_ROLES.contains(&value) {
            problems.push(FieldError::invalid(&path.child("value"), value, "is reserved for the service"));
        }
    }
}

fn check_taints(taints: &[Taint], path: &FieldPath, problems: &mut Problems) {
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let value = taint.value.as_deref().unwrap_or_default();
        if !problems.has(&path.child("key")) {
            check_key(&taint.key, &path.child("key"), problems);
        }
        if let Some(why) = kubernetes::wrong_label_value(value)
            && !problems.has(&path.child("value"))
        {
            problems.push(FieldError::invalid(&path.child("value"), value, why));
        }
    }
}

/// A missing key is reported by the reader.
fn check_key(key: &str, at: &FieldPath, problems: &mut Problems) {
    if let Some(why) = kubernetes::wrong_qualified_name(key).filter(|_| !key.is_empty()) {
        problems.push(FieldError::invalid(at, key, why));
    }
}
