//! The creator and the last modifier of a resource, from the header that ARM sends.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};

/// The kinds of caller ARM names.
const IDENTITY_TYPES: [&str; 4] = ["User", "Application", "ManagedIdentity", "Key"];

/// What stands in for a caller ARM did not name.
const UNKNOWN: &str = "Unknown-ARO-HCP-frontend";

/// System data as stored and shown; keys in the order of the answer (alphabetical).
///
/// Times are kept as the text ARM handed in (seven fractional digits), because answers repeat them to the letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified_by_type: Option<String>,
}

/// Why a header is not system data; the text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SystemDataError(String);

impl SystemData {
    /// Reads the header. Nothing in it is required; what is there must be well-formed.
    pub fn parse(header: &str) -> Result<Self, SystemDataError> {
        // By way of a map: serde would also take an array for a struct.
        let members: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(header).map_err(|e| SystemDataError(e.to_string()))?;
        let data: Self =
            serde_json::from_value(members.into()).map_err(|e| SystemDataError(e.to_string()))?;
        for (name, kind) in
            [("createdByType", &data.created_by_type), ("lastModifiedByType", &data.last_modified_by_type)]
        {
            if let Some(kind) = kind
                && !IDENTITY_TYPES.contains(&kind.as_str())
            {
                return Err(SystemDataError(format!("{name} must be one of {}", IDENTITY_TYPES.join(", "))));
            }
        }
        for (name, at) in [("createdAt", &data.created_at), ("lastModifiedAt", &data.last_modified_at)] {
            if let Some(at) = at
                && at.parse::<Timestamp>().is_err()
            {
                return Err(SystemDataError(format!("{name} must be an RFC 3339 time")));
            }
        }
        Ok(data)
    }

    /// What a new resource gets: the header's data, with its gaps filled.
    pub fn for_create(self, now: Timestamp) -> Self {
        let at = arm_time(now);
        let unknown = || Some(UNKNOWN.to_owned());
        let application = || Some("Application".to_owned());
        Self {
            created_at: self.created_at.clone().or_else(|| Some(at.clone())),
            created_by: self.created_by.clone().or_else(unknown),
            created_by_type: self.created_by_type.clone().or_else(application),
            last_modified_at: self.last_modified_at.or(self.created_at).or(Some(at)),
            last_modified_by: self.last_modified_by.or(self.created_by).or_else(unknown),
            last_modified_by_type: self.last_modified_by_type.or(self.created_by_type).or_else(application),
        }
    }

    /// What a changed resource gets: who made it stays, who changed it comes from the header.
    pub fn for_update(&self, header: Self, now: Timestamp) -> Self {
        Self {
            created_at: self.created_at.clone(),
            created_by: self.created_by.clone(),
            created_by_type: self.created_by_type.clone(),
            last_modified_at: header.last_modified_at.or_else(|| Some(arm_time(now))),
            last_modified_by: header.last_modified_by.or_else(|| Some(UNKNOWN.to_owned())),
            last_modified_by_type: header.last_modified_by_type.or_else(|| Some("Application".to_owned())),
        }
    }
}

/// A time as ARM writes it in system data: seven fractional digits.
fn arm_time(at: Timestamp) -> String {
    format!("{at:.7}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T10:00:00.123456789Z".parse().unwrap()
    }

    #[test]
    fn a_missing_header_is_filled_and_says_who_filled_it() {
        let data = SystemData::default().for_create(now());
        assert_eq!(data.created_at.as_deref(), Some("2026-11-15T10:00:00.1234567Z"));
        assert_eq!(data.created_by.as_deref(), Some("Unknown-ARO-HCP-frontend"));
        assert_eq!(data.created_at, data.last_modified_at);
    }

    #[test]
    fn who_made_a_resource_never_changes() {
        let made =
            SystemData::parse(r#"{"createdBy":"ann","createdByType":"User"}"#).unwrap().for_create(now());
        let header =
            SystemData::parse(r#"{"createdBy":"eve","lastModifiedBy":"bob","lastModifiedByType":"User"}"#);
        let changed = made.for_update(header.unwrap(), now());
        assert_eq!(changed.created_by.as_deref(), Some("ann"));
        assert_eq!(changed.last_modified_by.as_deref(), Some("bob"));
    }

    #[test]
    fn a_malformed_header_is_refused_with_the_reason() {
        assert!(SystemData::parse("{").is_err());
        assert!(SystemData::parse("[]").is_err());
        let error = SystemData::parse(r#"{"createdByType":"Robot"}"#).unwrap_err();
        assert_eq!(error.to_string(), "createdByType must be one of User, Application, ManagedIdentity, Key");
        let error = SystemData::parse(r#"{"createdAt":"yesterday"}"#).unwrap_err();
        assert_eq!(error.to_string(), "createdAt must be an RFC 3339 time");
    }
}
