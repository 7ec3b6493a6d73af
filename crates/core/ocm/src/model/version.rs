//! OpenShift releases on offer.

use crate::Time;

objects! {
    /// A release.
    Version {
        kind: String,
        /// `openshift-v<version>`, with `-<channel group>` unless that is `stable`.
        id: String,
        href: String,
        raw_id: String,
        channel_group: String,
        enabled: bool,
        default: bool,
        hosted_control_plane_enabled: bool,
        hosted_control_plane_default: bool,
        rosa_enabled: bool,
        available_upgrades: Vec<String>,
        end_of_life_timestamp: Time,
        release_image: String,
        release_images: ReleaseImages,
    }

    /// The images of a release by architecture.
    ReleaseImages {
        arm64: ReleaseImageDetails,
        multi: ReleaseImageDetails,
    }

    /// An image of a release.
    ReleaseImageDetails {
        release_image: String,
        available_upgrades: Vec<String>,
    }
}

/// The prefix of version ids.
pub const VERSION_PREFIX: &str = "openshift-v";

/// The channel group without a suffix in version ids.
pub const STABLE: &str = "stable";

/// The id of a release in a channel group.
pub fn version_id(raw: &str, channel_group: &str) -> String {
    match channel_group {
        "" | STABLE => format!("{VERSION_PREFIX}{raw}"),
        other => format!("{VERSION_PREFIX}{raw}-{other}"),
    }
}
