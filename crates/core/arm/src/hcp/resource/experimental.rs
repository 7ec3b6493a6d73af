//! Tags that ask for what is not offered to everybody.
//!
//! They count only for subscriptions that have the feature; for others they are tags like any other. With the
//! feature, a tag that looks like one of these and is not is refused, since a typing error would go unnoticed.

use std::time::Duration;

use super::Tags;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

const PREFIX: &str = "aro-hcp.experimental.";

/// Every experimental tag, after the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    SingleReplica,
    SizeOverride,
    OperatorImage,
    ExactVersion,
    MaxCreation,
    MaxDeletion,
    NodePoolMaxCreation,
}

const NAMES: [(&str, Tag); 7] = [
    ("cluster.single-replica", Tag::SingleReplica),
    ("cluster.size-override", Tag::SizeOverride),
    ("cluster.control-plane-operator-image-override", Tag::OperatorImage),
    ("cluster.control-plane-exact-version", Tag::ExactVersion),
    ("cluster.max-creation-duration", Tag::MaxCreation),
    ("cluster.max-deletion-duration", Tag::MaxDeletion),
    ("nodepool.max-creation-duration", Tag::NodePoolMaxCreation),
];

/// The experimental tags among these, with their paths. Names are matched without regard to case.
pub fn find<'a>(tags: &'a Tags, problems: &mut Problems) -> Vec<(Tag, &'a str, FieldPath)> {
    let mut found = Vec::new();
    for (name, value) in tags {
        let lower = name.to_lowercase();
        let Some(rest) = lower.strip_prefix(PREFIX) else { continue };
        let at = FieldPath::new("tags").key(name);
        match NAMES.iter().find(|(known, _)| *known == rest) {
            Some((_, tag)) => found.push((*tag, value.as_str(), at)),
            None => problems.push(FieldError::invalid(&at, name, "unrecognized experimental tag")),
        }
    }
    found
}

/// A duration of at least a minute, written like `30m` or `1h30m`.
pub fn duration(value: &str, at: &FieldPath, problems: &mut Problems) -> Option<Duration> {
    let Some(duration) = parse_duration(value) else {
        problems.push(FieldError::invalid(at, value, "must be a duration like \"30m\" or \"1h30m\""));
        return None;
    };
    if duration < Duration::from_mins(1) {
        problems.push(FieldError::invalid(at, value, "must be at least 1m"));
        return None;
    }
    Some(duration)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let (unit, seconds) = [("ms", 0.001), ("h", 3600.0), ("m", 60.0), ("s", 1.0)]
            .into_iter()
            .find(|(unit, _)| tail.starts_with(unit))?;
        total += number.parse::<f64>().ok()? * seconds;
        rest = tail.strip_prefix(unit)?;
    }
    if text.is_empty() {
        return None;
    }
    Duration::try_from_secs_f64(total).ok().filter(|duration| duration.as_secs() <= 366 * 24 * 3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_they_are_written() {
        for (text, seconds) in [("30m", 1800), ("1h30m", 5400), ("90s", 90), ("1.5h", 5400), ("60000ms", 60)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "30", "m", "1d", "-30m", "1h 30m", "1..5h", "é", "9999999999999h", "30mé"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_misspelt_experimental_tag_is_refused_and_others_are_not_looked_at() {
        let tags = Tags::from([
            ("ARO-HCP.Experimental.Cluster.Single-Replica".into(), "SingleReplica".into()),
            ("aro-hcp.experimental.cluster.singel".into(), "x".into()),
            ("env".into(), "test".into()),
        ]);
        let mut problems = Problems::default();
        let found = find(&tags, &mut problems);
        assert_eq!(found.iter().map(|(tag, ..)| *tag).collect::<Vec<_>>(), [Tag::SingleReplica]);
        assert!(problems.has(&FieldPath::new("tags[aro-hcp.experimental.cluster.singel]")));
    }
}
