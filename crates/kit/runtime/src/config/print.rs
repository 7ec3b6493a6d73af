//! The effective configuration, for people. Never a secret.

use std::borrow::Cow;

use toml::Value;

use super::{Loaded, Origin};

/// One line of `aro config print`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedKey {
    /// The key's full path.
    pub key: String,
    /// Its value in TOML; `None` if it is not set.
    pub value: Option<String>,
    /// Where the value came from.
    pub origin: Origin,
}

impl Loaded {
    /// Every key, in the order of the reference, with its value and origin.
    pub fn print(&self) -> Vec<PrintedKey> {
        let mut lines = Vec::new();
        for entry in &self.schema.entries {
            for key in &entry.keys {
                let found = self.values.get(entry.table).and_then(|section| section.get(key.name));
                lines.push(PrintedKey {
                    key: format!("{}.{}", entry.table, key.name),
                    value: found.map(|(value, _)| shown(value)),
                    origin: found.map_or(Origin::Default, |(_, origin)| origin.clone()),
                });
            }
        }
        lines
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => Value::String(redacted(text).into_owned()).to_string(),
        other => other.to_string(),
    }
}

/// Hides passwords in what looks like a URL or a connection string. Secrets belong in files, but someone will
/// write `postgres://user:password@host` where a URL is asked for.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if let Some(scheme) = text.find("://") {
        let authority = scheme + 3;
        let end = text[authority..].find(['/', '?', '#']).map_or(text.len(), |found| authority + found);
        if let Some(at) = text[authority..end].rfind('@')
            && let Some(colon) = text[authority..authority + at].find(':')
        {
            let hidden = format!("{}***{}", &text[..=authority + colon], &text[authority + at..]);
            text = Cow::Owned(hidden);
        }
    }
    for word in ["password=", "sslpassword=", "passfile="] {
        let Some(start) = text.to_ascii_lowercase().find(word) else { continue };
        let value = start + word.len();
        let end = text[value..].find(['&', ' ']).map_or(text.len(), |found| value + found);
        let hidden = format!("{}***{}", &text[..value], &text[end..]);
        text = Cow::Owned(hidden);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_people_put_them() {
        for (given, shown) in [
            ("postgres://aro:hunter2@db/aro", "postgres://aro:***@db/aro"),
            ("postgres://aro:p@ss@db/aro?sslmode=require", "postgres://aro:***@db/aro?sslmode=require"),
            ("postgres://db/aro?user=a&password=hunter2&x=1", "postgres://db/aro?user=a&password=***&x=1"),
            ("host=db password=hunter2 user=aro", "host=db password=*** user=aro"),
            ("postgres://db:5432/aro", "postgres://db:5432/aro"),
            ("127.0.0.1:8443", "127.0.0.1:8443"),
        ] {
            assert_eq!(redacted(given), shown);
        }
    }
}
