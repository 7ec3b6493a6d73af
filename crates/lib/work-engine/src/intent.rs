//! What a work is about to bring, noted on its record before anything of it is brought.
//!
//! The record's status says what is applied, and can only say so afterwards. A process that is killed in between leaves
//! objects that no status names, and the next one may receive nothing of the work but its deletion. So the names come
//! first, as an annotation, with the same request that makes the record. Being named here gives no right to an object:
//! only what has the record for an owner is deleted with it.

use aro_crds::work::v1::{AppliedManifestResourceMeta, AppliedManifestWork, UpdateStrategyType};
use kube::ResourceExt as _;

use crate::manifest::{Prepared, same_object};

/// The annotation: `group/version/resource/namespace/name`, with blanks between them.
pub(crate) const INTENDED: &str = "aro.dev/intended";

/// All annotations of an object may have 256 KiB together. What would not fit is left to the cluster's garbage collector.
const MOST_BYTES: usize = 128 * 1024;

/// What manifests are going to make their own.
pub(crate) fn of(prepared: &[Prepared]) -> Vec<AppliedManifestResourceMeta> {
    let targets = prepared.iter().filter_map(|prepared| prepared.target.as_ref().ok());
    let brought =
        targets.filter(|target| target.owned && target.choice.strategy != UpdateStrategyType::ReadOnly);
    brought.map(|target| target.applied("")).collect()
}

/// As the annotation says it.
pub(crate) fn write(entries: &[AppliedManifestResourceMeta]) -> String {
    let mut text = String::new();
    for entry in entries {
        let words = [&entry.group, &entry.version, &entry.resource, &entry.namespace, &entry.name];
        let size = words.iter().map(|word| word.len() + 1).sum::<usize>();
        if text.len() + size > MOST_BYTES {
            continue;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&words.map(String::as_str).join("/"));
    }
    text
}

/// What the annotation of a record says; what cannot be read is passed over.
pub(crate) fn read(record: &AppliedManifestWork) -> Vec<AppliedManifestResourceMeta> {
    let text = record.annotations().get(INTENDED).map_or("", String::as_str);
    let entry = |entry: &str| {
        let mut words = entry.splitn(5, '/').map(str::to_owned);
        Some(AppliedManifestResourceMeta {
            group: words.next()?,
            version: words.next()?,
            resource: words.next()?,
            namespace: words.next()?,
            name: words.next()?,
            uid: String::new(),
        })
    };
    text.split(' ').filter_map(entry).collect()
}

/// Whether a record names all of these already, in its status or as intended.
pub(crate) fn covers(record: &AppliedManifestWork, wanted: &[AppliedManifestResourceMeta]) -> bool {
    let applied = record.status.as_ref().map_or(&[][..], |status| &status.applied_resources);
    let named = |list: &[AppliedManifestResourceMeta], one: &AppliedManifestResourceMeta| {
        list.iter().any(|known| same_object(known, one))
    };
    if wanted.iter().all(|one| named(applied, one)) {
        return true;
    }
    let intended = read(record);
    // What is too long to be noted stays so, however often it is tried.
    let left_out = write(wanted).len() + 4096 > MOST_BYTES;
    left_out || wanted.iter().all(|one| named(applied, one) || named(&intended, one))
}

#[cfg(test)]
mod tests {
    use aro_crds::work::v1::{AppliedManifestWorkSpec, AppliedManifestWorkStatus};

    use super::*;

    fn entry(group: &str, name: &str) -> AppliedManifestResourceMeta {
        AppliedManifestResourceMeta {
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: "things".to_owned(),
            namespace: "n".to_owned(),
            name: name.to_owned(),
            uid: String::new(),
        }
    }

    fn record(applied: &[AppliedManifestResourceMeta], intended: &str) -> AppliedManifestWork {
        let mut record = AppliedManifestWork::new("r", AppliedManifestWorkSpec::default());
        record.metadata.annotations = Some([(INTENDED.to_owned(), intended.to_owned())].into());
        let applied_resources = applied.to_vec();
        record.status = Some(AppliedManifestWorkStatus { applied_resources, eviction_start_time: None });
        record
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let cluster_wide = AppliedManifestResourceMeta { namespace: String::new(), ..entry("", "c:d") };
        let all = [entry("", "a"), entry("g.io", "b"), cluster_wide];
        assert_eq!(write(&all), "/v1/things/n/a g.io/v1/things/n/b /v1/things//c:d");
        assert_eq!(read(&record(&[], &write(&all))), all);
        for nonsense in ["", " ", "a/b", "////", "//// x"] {
            assert!(read(&record(&[], nonsense)).len() <= 1, "{nonsense:?}");
        }
    }

    #[test]
    fn what_is_applied_or_intended_need_not_be_noted_again() {
        let (a, b, c) = (entry("", "a"), entry("", "b"), entry("", "c"));
        let known = record(std::slice::from_ref(&a), &write(std::slice::from_ref(&b)));
        assert!(covers(&known, &[a.clone(), b.clone()]));
        assert!(!covers(&known, &[a, b, c]));
        assert!(covers(&known, &[]));
    }

    #[test]
    fn a_list_that_fits_no_annotation_is_cut_and_not_tried_for_ever() {
        let many: Vec<_> =
            (0..4000).map(|number| entry("group.example.com", &format!("{number:040}"))).collect();
        let text = write(&many);
        assert!(text.len() <= MOST_BYTES);
        assert!(covers(&record(&[], &text), &many));
    }
}
