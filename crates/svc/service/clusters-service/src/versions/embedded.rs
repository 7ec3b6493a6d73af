//! The embedded list of releases, as the live service listed them when they were recorded.

use aro_ocm::{RECORDED_LINES, RecordedLine};
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{CHANNEL_GROUPS, Release, VersionNumber};

/// All releases of all channel groups.
pub(super) fn releases() -> Vec<Release> {
    let release = |group: &'static str, line: &RecordedLine, patch: u32| {
        let number = VersionNumber::new(4, line.minor, patch);
        let image = image(&number);
        Release { number, channel_group: group.to_owned(), enabled: line.enabled, image }
    };
    let mut all = Vec::new();
    for group in CHANNEL_GROUPS {
        for line in &RECORDED_LINES {
            all.extend(line.patches().map(|patch| release(group, line, patch)));
        }
    }
    all
}

/// The release image. There is no registry to ask, so the digest is that of the version's name.
fn image(number: &VersionNumber) -> String {
    let digest = Sha256::digest(format!("aro.dev/ocp-release/{number}/multi").as_bytes());
    let mut image = "quay.io/openshift-release-dev/ocp-release@sha256:".to_owned();
    for byte in digest {
        // Writing to a text cannot fail.
        let _ = write!(image, "{byte:02x}");
    }
    image
}
