//! Taking objects away: those a work no longer names, and all of a work that goes.

use std::sync::Arc;

use aro_crds::work::v1::AppliedManifestResourceMeta;
use aro_kube::informer::ObjectKey;

use crate::decide::Known;
use crate::failure::Failure;
use crate::kinds::Kinds;
use crate::live::Live;
use crate::metrics::ApplyMetrics;
use crate::owners::{Owner, Removal, plan_removal};
use crate::watch::{Sight, Watch, Watches};
use crate::write;

/// What became of an object that is to go.
#[derive(Debug)]
pub(crate) enum Left {
    /// It is gone, or it is not ours.
    Nothing,
    /// It is still there; who holds it.
    Held(String),
}

/// Where an entry of a record is watched. `None`: its resource is not served, so that nothing of it can be left.
pub(crate) async fn find(
    entry: &AppliedManifestResourceMeta,
    kinds: &Kinds,
    watches: &Watches,
    work: &str,
) -> Result<Option<Arc<Watch>>, Failure> {
    let kind = kinds.of_resource(&entry.group, &entry.version, &entry.resource).await?;
    let key = ObjectKey::new(entry.namespace.clone(), entry.name.clone());
    Ok(kind.map(|kind| watches.want(&kind, &key, work)))
}

/// Takes one object away, or our hands off it.
pub(crate) async fn remove(
    watch: &Watch,
    key: &ObjectKey,
    owner: &Owner,
    stays: bool,
    metrics: &ApplyMetrics,
) -> Result<Left, Failure> {
    let known = match watch.look(key) {
        Known::Unknown => write::read(watch, key).await?,
        _ if watch.sight() == Sight::Blind => write::read(watch, key).await?,
        known => known,
    };
    let live = if let Known::There(live) = known { Some(live) } else { None };
    match (plan_removal(live.as_deref(), owner, stays), live) {
        (Removal::Disown, Some(live)) => {
            match write::own(watch, key, &live, owner, false).await {
                Err(Failure::Api(kube::Error::Api(status))) if status.code == 404 => {}
                other => drop(other?),
            }
            Ok(Left::Nothing)
        }
        (Removal::Delete, Some(live)) => {
            metrics.removals.inc();
            let left = match write::delete(watch, key, live.uid()).await {
                // It is another one by now: that is not ours.
                Err(Failure::Api(kube::Error::Api(status))) if status.code == 409 => {
                    write::read(watch, key).await?;
                    return Err(Failure::Api(kube::Error::Api(status)));
                }
                left => left?,
            };
            Ok(left.map_or(Left::Nothing, |left| Left::Held(held(watch, key, &left))))
        }
        (Removal::Wait, Some(live)) => Ok(Left::Held(held(watch, key, &live))),
        _ => Ok(Left::Nothing),
    }
}

/// Who holds an object, in words.
fn held(watch: &Watch, key: &ObjectKey, live: &Live) -> String {
    let kind = &watch.kind().api.kind;
    match live.finalizers().as_slice() {
        [] => format!("{kind} {key}"),
        finalizers => format!("{kind} {key} (finalizers {})", finalizers.join(", ")),
    }
}

/// What the condition of a work that goes says.
pub(crate) fn leaving_message(held: &[String], failures: &[String]) -> String {
    const MOST: usize = 5;
    let list = |what: &[String]| {
        let shown = what.iter().take(MOST).cloned().collect::<Vec<_>>().join("; ");
        if what.len() > MOST { format!("{shown}; and {} more", what.len() - MOST) } else { shown }
    };
    match (held, failures) {
        ([], []) => "The manifests are being deleted".to_owned(),
        (held, []) => format!("Waiting for the end of {}", list(held)),
        ([], failures) => format!("Failed to delete: {}", list(failures)),
        (held, failures) => {
            format!("Waiting for the end of {}. Failed to delete: {}", list(held), list(failures))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_that_goes_says_what_it_waits_for() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(leaving_message(&[], &[]), "The manifests are being deleted");
        let held = texts(&["Namespace a (finalizers f)"]);
        assert_eq!(leaving_message(&held, &[]), "Waiting for the end of Namespace a (finalizers f)");
        let many = texts(&["1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(leaving_message(&many, &[]), "Waiting for the end of 1; 2; 3; 4; 5; and 2 more");
        assert!(
            leaving_message(&held, &texts(&["Pod b: forbidden"]))
                .ends_with("Failed to delete: Pod b: forbidden")
        );
    }
}
