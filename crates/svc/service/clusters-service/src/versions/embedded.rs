//! The embedded list of releases, as the live service listed them when they were recorded.

use sha2::{Digest as _, Sha256};

use super::{CHANNEL_GROUPS, Release, VersionNumber};

/// The patch releases of a minor version.
struct Line {
    minor: u32,
    last_patch: u32,
    skipped: &'static [u32],
    enabled: bool,
}

const LINES: [Line; 4] = [
    Line { minor: 19, last_patch: 42, skipped: &[8], enabled: false },
    Line { minor: 20, last_patch: 35, skipped: &[7, 9], enabled: true },
    Line { minor: 21, last_patch: 30, skipped: &[], enabled: true },
    Line { minor: 22, last_patch: 11, skipped: &[], enabled: true },
];

/// All releases of all channel groups.
pub(super) fn releases() -> Vec<Release> {
    let release = |group: &'static str, line: &Line, patch: u32| {
        let number = VersionNumber::new(4, line.minor, patch);
        let image = image(&number);
        Release { number, channel_group: group.to_owned(), enabled: line.enabled, image }
    };
    let mut all = Vec::new();
    for group in CHANNEL_GROUPS {
        for line in &LINES {
            let patches = (0..=line.last_patch).filter(|patch| !line.skipped.contains(patch));
            all.extend(patches.map(|patch| release(group, line, patch)));
        }
    }
    all
}

/// The release image. There is no registry to ask, so the digest is that of the version's name.
fn image(number: &VersionNumber) -> String {
    let digest = Sha256::digest(format!("aro.dev/ocp-release/{number}/multi").as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("quay.io/openshift-release-dev/ocp-release@sha256:{hex}")
}
