//! What the agent does about a spec event, given the record it has. Pure.

use std::sync::Arc;

use aro_base::Timestamp;
use aro_bundle::{Event, MAX_MANIFESTS, ManifestBundle, content_hash};
use serde_json::{Map, Value};

use crate::record::Record;

/// The outcome of a spec event.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// Apply the bundle to the cluster.
    Apply(Box<Record>),
    /// The record has this version already. The server may have lost its status, which is published again.
    Republish,
    /// Delete the work from the cluster.
    Delete(Box<Record>),
    /// The bundle cannot be applied; the status carries the reason.
    Reject(Box<Record>, String),
    /// Ignore the event, for this reason.
    Drop(&'static str),
}

/// Decides about a spec event of this consumer.
pub fn plan(event: &Event, known: Option<&Record>, now: Timestamp) -> Decision {
    let Ok(id) = event.resource() else { return Decision::Drop("no resource id") };
    // An event without a version counts as version 0.
    let version = event.resource_version.unwrap_or(0);
    let metadata = event.metadata_object();
    if event.deletion_timestamp.is_some() {
        let record = if let Some(known) = known {
            // The applied manifests are deleted. The event contributes its version and its delete option.
            Record {
                deleting: true,
                version: version.max(known.version),
                source: source_of(event, known),
                spec: deletion_spec(event, version, known),
                ..known.clone()
            }
        } else {
            let spec = event.payload::<ManifestBundle>().unwrap_or_default().into();
            Record { deleting: true, spec, ..record(event, id, version, metadata.unwrap_or_default(), now) }
        };
        return Decision::Delete(Box::new(record));
    }
    if known.is_some_and(|known| known.deleting) {
        return Decision::Drop("work is being deleted");
    }
    if known.is_some_and(|known| version != 0 && version < known.version) {
        return Decision::Drop("stale resource version");
    }
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(error) => {
            let record = record(event, id, version, Map::new(), now);
            return Decision::Reject(Box::new(record), error.to_string());
        }
    };
    let mut record = record(event, id, version, metadata, now);
    match parse_bundle(event) {
        Ok(spec) => record.spec = spec.into(),
        Err(reason) => return Decision::Reject(Box::new(record), reason),
    }
    match known {
        Some(known) if is_same(known, &record) => Decision::Republish,
        Some(known) => {
            record.name.clone_from(&known.name);
            record.observed.clone_from(&known.observed);
            Decision::Apply(Box::new(record))
        }
        None => Decision::Apply(Box::new(record)),
    }
}

/// The spec of a work that is being deleted: the applied manifests with the event's delete option. The option may have
/// changed while the agent was disconnected, and no later event carries it.
fn deletion_spec(event: &Event, version: i32, known: &Record) -> Arc<ManifestBundle> {
    if version < known.version || event.data.is_empty() {
        return known.spec.clone();
    }
    match event.payload::<ManifestBundle>() {
        Ok(bundle) if bundle.delete_option != known.spec.delete_option => {
            Arc::new(ManifestBundle { delete_option: bundle.delete_option, ..(*known.spec).clone() })
        }
        _ => known.spec.clone(),
    }
}

fn source_of(event: &Event, known: &Record) -> String {
    if event.source.is_empty() { known.source.clone() } else { event.source.clone() }
}

fn is_same(known: &Record, new: &Record) -> bool {
    known.version == new.version
        && known.hash == new.hash
        && known.metadata == new.metadata
        && known.source == new.source
}

fn parse_bundle(event: &Event) -> Result<ManifestBundle, String> {
    let spec: ManifestBundle = event.payload().map_err(|error| error.to_string())?;
    if spec.manifests.is_empty() {
        return Err("the bundle holds no manifests".to_owned());
    }
    // The data is at least as long as its manifests, so most bundles need no measuring.
    if event.data.len() > MAX_MANIFESTS {
        let size: usize = spec.manifests.iter().map(|manifest| manifest.to_string().len()).sum();
        if size > MAX_MANIFESTS {
            return Err(format!("the manifests have {size} bytes together, more than {MAX_MANIFESTS}"));
        }
    }
    Ok(spec)
}

fn record(event: &Event, id: &str, version: i32, metadata: Map<String, Value>, now: Timestamp) -> Record {
    let name = metadata.get("name").and_then(Value::as_str).filter(|name| is_name(name)).unwrap_or(id);
    Record {
        id: id.to_owned(),
        name: name.to_owned(),
        source: event.source.clone(),
        version,
        log_tracing: event.log_tracing.clone(),
        hash: content_hash(&event.data),
        spec: Arc::default(),
        deleting: false,
        deleted: false,
        received_at: now,
        observed: None,
        metadata,
    }
}

/// Whether the name is valid for the records on the cluster.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !name.is_empty() && name.len() <= 180 && name.chars().all(allowed)
}

#[cfg(test)]
mod tests;
