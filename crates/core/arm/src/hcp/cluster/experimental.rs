//! Experimental settings of a cluster, from its tags and from a version given to the patch.
//!
//! A subscription that loses the feature keeps what its clusters already have: an unrelated write must not change
//! how they run. It can only not ask for more.

use super::{Cluster, ExperimentalFeatures};
use crate::hcp::openshift_version::Release;
use crate::hcp::resource::Context;
use crate::hcp::resource::experimental::{Tag, duration, find};
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

/// Works out the settings of the new cluster. A full version becomes a pin, and its line the requested version.
pub fn apply(cluster: &mut Cluster, old: Option<&Cluster>, cx: &Context<'_>, problems: &mut Problems) {
    if !cx.experimental {
        if let Some(old) = old {
            cluster.hosting.experimental_features = old.hosting.experimental_features.clone();
        }
        return;
    }
    let mut features = ExperimentalFeatures::default();
    let mut delete_timeout = None;
    let version_at = FieldPath::new("properties.version.id");
    if let Some(release) = Release::parse(&cluster.properties.version.id) {
        cluster.properties.version.id = release.line().to_string();
        features.control_plane_exact_version = Some(release.to_string());
    }
    for (tag, value, at) in find(&cluster.tags, problems) {
        match tag {
            Tag::SingleReplica => features.single_replica = only(value, "SingleReplica", &at, problems),
            Tag::SizeOverride => features.minimal_size = only(value, "Minimal", &at, problems),
            Tag::OperatorImage if value.trim().is_empty() => {
                problems.push(FieldError::invalid(&at, value, "must be an image pull spec"));
            }
            Tag::OperatorImage => features.control_plane_operator_image = Some(value.to_owned()),
            Tag::ExactVersion => match Release::parse(value) {
                Some(release) if release.line().to_string() == cluster.properties.version.id => {
                    features.control_plane_exact_version = Some(release.to_string());
                }
                Some(_) => {
                    let why = format!("must be a release of the requested version, see {version_at}");
                    problems.push(FieldError::invalid(&at, value, why));
                }
                None => problems.push(FieldError::invalid(&at, value, "must be a version like \"4.22.3\"")),
            },
            Tag::MaxCreation => {
                if let (Some(limit), None) = (duration(value, &at, problems), old) {
                    let deadline = cx.now.saturating_add(limit);
                    cluster.service.create_operation_completion_deadline = deadline.ok();
                }
            }
            Tag::MaxDeletion => {
                let limit = duration(value, &at, problems);
                delete_timeout = limit.and_then(|limit| i64::try_from(limit.as_secs()).ok());
            }
            Tag::NodePoolMaxCreation => {}
        }
    }
    cluster.service.delete_operation_completion_timeout_seconds = delete_timeout;
    cluster.hosting.experimental_features = features;
}

fn only(value: &str, word: &str, at: &FieldPath, problems: &mut Problems) -> bool {
    let right = value == word;
    if !right {
        problems.push(FieldError::unsupported(at, value, &[word]));
    }
    right
}
