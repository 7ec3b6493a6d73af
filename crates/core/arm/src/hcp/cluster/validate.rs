//! Rules across the members of a cluster, one subject per file.
//!
//! Each rule is a pure function that adds what it finds. What depends on the subscription's features is judged when
//! it is new or changed only: a stored value stays good when the feature is gone.

mod encryption;
mod identities;
mod mirrors;
mod network;
mod platform;
mod version;

pub use version::check_channel_group;

use super::Cluster;
use crate::hcp::resource::Context;
use crate::hcp::version::ApiVersion;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

pub fn check(
    new: &Cluster,
    old: Option<&Cluster>,
    api_version: ApiVersion,
    cx: &Context<'_>,
    problems: &mut Problems,
) {
    let properties = FieldPath::new("properties");
    version::check(new, old, cx, &properties.child("version"), problems);
    network::check(&new.properties, &properties, problems);
    platform::check(new, api_version, &properties, problems);
    identities::check(new, cx.allow_data_plane_identities, problems);
    encryption::check(&new.properties.etcd.data_encryption, &properties, problems);
    mirrors::check(&new.properties.image_digest_mirrors, &properties.child("imageDigestMirrors"), problems);
    if new.properties.autoscaling.pod_priority_threshold == 0 {
        // Zero means "not set" further down.
        problems.push(FieldError::required(&properties.child("autoscaling").child("podPriorityThreshold")));
    }
}
