//! YAML, with the words of version 1.1 that Kubernetes' own parser still knows (`yes`, `0644`).

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

/// Reads one document. Beside the value: the keys given more than once.
pub(super) fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    match read(bytes, DuplicateKeyPolicy::Error) {
        Ok(value) => Ok((value, Vec::new())),
        Err(strict) => {
            let value = read(bytes, DuplicateKeyPolicy::LastWins).map_err(|error| message(&error))?;
            Ok((value, vec![duplicate(&strict)]))
        }
    }
}

fn read(bytes: &[u8], duplicate_keys: DuplicateKeyPolicy) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_slice_with_options(bytes, options)
}

/// In the words of Go's parser, where we know them.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let text = match text {
        text if text.starts_with("unexpected character") => "found character that cannot start any token",
        text if text.starts_with("unclosed") => "did not find expected node content",
        text => text,
    };
    match error.location() {
        Some(location) => format!("yaml: line {}: {text}", location.line()),
        None => format!("yaml: {text}"),
    }
}

fn duplicate(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => key.clone(),
        other => other.to_string(),
    }
}
