//! The built-in list of OpenShift releases, as the live service listed them when it was recorded.

use aro_ocm::RECORDED_LINES;
use async_trait::async_trait;

use crate::ports::{PortError, Release, VersionCatalogue};

/// Serves the built-in list.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInCatalogue;

#[async_trait]
impl VersionCatalogue for BuiltInCatalogue {
    async fn releases(&self) -> Result<Vec<Release>, PortError> {
        Ok(releases())
    }
}

/// All releases, sorted as text, which is how the live service lists them. Disabled ones are listed, too.
fn releases() -> Vec<Release> {
    let mut releases: Vec<Release> = RECORDED_LINES
        .iter()
        .flat_map(|line| {
            line.patches().map(|patch| Release {
                version: format!("4.{}.{patch}", line.minor),
                channel_group: "stable".to_owned(),
                enabled: line.enabled,
            })
        })
        .collect();
    releases.sort_by(|a, b| a.version.cmp(&b.version));
    releases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_the_recorded_one() {
        let releases = releases();
        assert_eq!(releases.len(), 119);
        let names: Vec<&str> = releases.iter().map(|release| release.version.as_str()).take(4).collect();
        assert_eq!(names, ["4.19.0", "4.19.1", "4.19.10", "4.19.11"]);
        assert!(releases.iter().all(|release| release.enabled != release.version.starts_with("4.19.")));
    }
}
