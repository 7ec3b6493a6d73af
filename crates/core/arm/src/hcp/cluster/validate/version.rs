//! Which OpenShift version a cluster may ask for, from its own old and new value.

use crate::hcp::cluster::Cluster;
use crate::hcp::openshift_version::{Line, MIN_CLUSTER_LINE};
use crate::hcp::resource::Context;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

const CHANNEL_GROUPS: [&str; 2] = ["stable", "fast"];
const EXPERIMENTAL_CHANNEL_GROUPS: [&str; 4] = ["stable", "fast", "candidate", "nightly"];

/// Whether a channel group is offered. Node pools have the same rule.
pub fn check_channel_group(group: &str, experimental: bool, at: &FieldPath, problems: &mut Problems) {
    let offered: &[&str] = if experimental { &EXPERIMENTAL_CHANNEL_GROUPS } else { &CHANNEL_GROUPS };
    if !offered.contains(&group) {
        problems.push(FieldError::unsupported(at, group, offered));
    }
}

pub fn check(
    new: &Cluster,
    old: Option<&Cluster>,
    cx: &Context<'_>,
    path: &FieldPath,
    problems: &mut Problems,
) {
    let (version, before) = (&new.properties.version, old.map(|old| &old.properties.version));
    if before.is_none_or(|before| before.channel_group != version.channel_group) {
        check_channel_group(&version.channel_group, cx.experimental, &path.child("channelGroup"), problems);
    }
    let id = version.id.as_str();
    // A missing one is reported by the reader; an unchanged one was judged when it was set.
    if id.is_empty() || before.is_some_and(|before| before.id == id) {
        return;
    }
    let at = path.child("id");
    let Some(line) = Line::parse(id) else {
        let why = if cx.experimental {
            "must be specified as MAJOR.MINOR or as a full version"
        } else {
            "must be specified as MAJOR.MINOR; the patch release is managed by the service"
        };
        problems.push(FieldError::invalid(&at, id, why));
        return;
    };
    if line.major >= 5 && !cx.experimental {
        problems.push(FieldError::invalid(&at, id, format!("major version {} is not offered", line.major)));
    }
    if line < MIN_CLUSTER_LINE {
        problems.push(FieldError::invalid(&at, id, format!("must be at least {MIN_CLUSTER_LINE}")));
    }
    if let Some(before) = before.and_then(|before| Line::parse(&before.id)) {
        if line < before {
            problems.push(FieldError::invalid(&at, id, format!("may not decrease from {before}")));
        } else if !before.may_upgrade_to(line) {
            let why = if before.major == line.major {
                format!("may not be more than one minor version above {before}")
            } else {
                format!("may not be upgraded to from {before}")
            };
            problems.push(FieldError::invalid(&at, id, why));
        }
    }
}
