//! What a spec event means, given what is known. Decides only.

use std::sync::Arc;

use aro_base::Timestamp;
use aro_bundle::{Event, MAX_MANIFESTS, ManifestBundle, content_hash};
use serde_json::{Map, Value};

use crate::record::Record;

/// What to do about a spec event.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// Bring it onto the cluster.
    Apply(Box<Record>),
    /// It is known already: the server has perhaps lost what was said of it, so that is said again.
    Repeat,
    /// Take it away.
    Delete(Box<Record>),
    /// It cannot be applied, and its sender is told why.
    Refuse(Box<Record>, String),
    /// Nothing, for this reason.
    Drop(&'static str),
}

/// Decides about a spec event for this consumer.
pub fn decide(event: &Event, known: Option<&Record>, now: Timestamp) -> Decision {
    let Ok(id) = event.resource() else { return Decision::Drop("no resource id") };
    // One that a server forgot the version of has version 0.
    let version = event.resource_version.unwrap_or(0);
    let metadata = event.metadata_object();
    if event.deletion_timestamp.is_some() {
        let record = if let Some(known) = known {
            // What is to go is what is there; the generation is new, and what it says about what stays.
            Record {
                deleting: true,
                version: version.max(known.version),
                source: said_by(event, known),
                spec: leaving_spec(event, version, known),
                ..known.clone()
            }
        } else {
            let spec = event.payload::<ManifestBundle>().unwrap_or_default().into();
            Record { deleting: true, spec, ..record(event, id, version, metadata.unwrap_or_default(), now) }
        };
        return Decision::Delete(Box::new(record));
    }
    if known.is_some_and(|known| known.deleting) {
        return Decision::Drop("the work is being deleted");
    }
    if known.is_some_and(|known| version != 0 && version < known.version) {
        return Decision::Drop("an older version");
    }
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(error) => {
            let record = record(event, id, version, Map::new(), now);
            return Decision::Refuse(Box::new(record), error.to_string());
        }
    };
    let mut record = record(event, id, version, metadata, now);
    match read(event) {
        Ok(spec) => record.spec = spec.into(),
        Err(why) => return Decision::Refuse(Box::new(record), why),
    }
    match known {
        Some(known) if same(known, &record) => Decision::Repeat,
        Some(known) => {
            record.name.clone_from(&known.name);
            record.seen.clone_from(&known.seen);
            Decision::Apply(Box::new(record))
        }
        None => Decision::Apply(Box::new(record)),
    }
}

/// What is known of a work that goes, with the newest word on what stays: that may have changed while nobody was there to
/// hear it, and a deletion is the last to tell.
fn leaving_spec(event: &Event, version: i32, known: &Record) -> Arc<ManifestBundle> {
    if version < known.version || event.data.is_empty() {
        return known.spec.clone();
    }
    match event.payload::<ManifestBundle>() {
        Ok(said) if said.delete_option != known.spec.delete_option => {
            Arc::new(ManifestBundle { delete_option: said.delete_option, ..(*known.spec).clone() })
        }
        _ => known.spec.clone(),
    }
}

fn said_by(event: &Event, known: &Record) -> String {
    if event.source.is_empty() { known.source.clone() } else { event.source.clone() }
}

fn same(known: &Record, new: &Record) -> bool {
    known.version == new.version
        && known.hash == new.hash
        && known.metadata == new.metadata
        && known.source == new.source
}

fn read(event: &Event) -> Result<ManifestBundle, String> {
    let spec: ManifestBundle = event.payload().map_err(|error| error.to_string())?;
    if spec.manifests.is_empty() {
        return Err("the bundle holds no manifests".to_owned());
    }
    // The data as a whole is at least as long as its manifests: most bundles need no second look.
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
        tracing: event.log_tracing.clone(),
        hash: content_hash(&event.data),
        spec: Arc::default(),
        deleting: false,
        gone: false,
        received: now,
        seen: None,
        metadata,
    }
}

/// Whether records on the cluster can be called so.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !name.is_empty() && name.len() <= 180 && name.chars().all(allowed)
}

#[cfg(test)]
mod tests;
