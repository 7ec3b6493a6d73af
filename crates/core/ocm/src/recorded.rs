//! The releases that the live service listed when it was recorded. Clusters Service offers them without an update graph, a
//! frontend without Clusters Service shows them.

/// A minor version and its patch releases.
#[derive(Debug, Clone, Copy)]
pub struct RecordedLine {
    /// The minor version of OpenShift 4.
    pub minor: u32,
    /// The newest patch release.
    pub last_patch: u32,
    /// Patch releases that were never published.
    pub skipped: &'static [u32],
    /// Whether clusters can be created with it.
    pub enabled: bool,
}

impl RecordedLine {
    /// The patch releases, oldest first.
    pub fn patches(&self) -> impl Iterator<Item = u32> + use<> {
        let skipped = self.skipped;
        (0..=self.last_patch).filter(move |patch| !skipped.contains(patch))
    }
}

/// The recorded lines, oldest first.
pub const RECORDED_LINES: [RecordedLine; 4] = [
    RecordedLine { minor: 19, last_patch: 42, skipped: &[8], enabled: false },
    RecordedLine { minor: 20, last_patch: 35, skipped: &[7, 9], enabled: true },
    RecordedLine { minor: 21, last_patch: 30, skipped: &[], enabled: true },
    RecordedLine { minor: 22, last_patch: 11, skipped: &[], enabled: true },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_releases_are_those_of_the_live_service() {
        let all: Vec<(u32, u32)> =
            RECORDED_LINES.iter().flat_map(|line| line.patches().map(|patch| (line.minor, patch))).collect();
        assert_eq!(all.len(), 119);
        assert!(!all.contains(&(19, 8)) && !all.contains(&(20, 7)) && all.contains(&(22, 11)));
    }
}
