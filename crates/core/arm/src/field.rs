//! Problems with one member of a request, in Kubernetes' field-error wording.

use std::fmt;

/// Where a member is: `properties.network.podCidr`, `properties.labels[2].key`, `tags[env]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FieldPath(String);

impl FieldPath {
    /// The whole body.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// A path given as text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A member of this object.
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// An element of this array.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub path: FieldPath,
    pub problem: Problem,
}

/// What is wrong. `Display` gives the message a caller reads, without the path (that is the error's target).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The member cannot be decoded at all: `expected string, got number`.
    Undecodable(String),
    Required(Option<String>),
    Invalid {
        value: String,
        why: String,
    },
    Unsupported {
        value: String,
        supported: Vec<String>,
    },
    Forbidden(String),
    TooLong {
        max: usize,
    },
    TooMany {
        count: usize,
        max: usize,
    },
    Duplicate(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(why) => {
                write!(f, "The request content was invalid and could not be deserialized: {why}")
            }
            Self::Required(None) => f.write_str("Required value"),
            Self::Required(Some(why)) => write!(f, "Required value: {why}"),
            Self::Invalid { value, why } => write!(f, "Invalid value: {value}: {why}"),
            Self::Unsupported { value, supported } => {
                let mut sorted = supported.clone();
                sorted.sort();
                let list: Vec<String> = sorted.iter().map(|value| format!("{value:?}")).collect();
                write!(f, "Unsupported value: {value:?}: supported values: {}", list.join(", "))
            }
            Self::Forbidden(why) => write!(f, "Forbidden: {why}"),
            Self::TooLong { max } => write!(f, "Too long: may not be more than {max} bytes"),
            Self::TooMany { count, max } => write!(f, "Too many: {count}: must have at most {max} items"),
            Self::Duplicate(value) => write!(f, "Duplicate value: {value:?}"),
        }
    }
}

impl FieldError {
    pub fn new(path: &FieldPath, problem: Problem) -> Self {
        Self { path: path.clone(), problem }
    }

    pub fn undecodable(path: &FieldPath, why: impl Into<String>) -> Self {
        Self::new(path, Problem::Undecodable(why.into()))
    }

    pub fn required(path: &FieldPath) -> Self {
        Self::new(path, Problem::Required(None))
    }

    /// `Invalid value: "x": why` — text values are quoted.
    pub fn invalid(path: &FieldPath, value: &str, why: impl Into<String>) -> Self {
        Self::new(path, Problem::Invalid { value: format!("{value:?}"), why: why.into() })
    }

    /// `Invalid value: 7: why` — numbers and booleans are not quoted.
    pub fn invalid_number(path: &FieldPath, value: impl fmt::Display, why: impl Into<String>) -> Self {
        Self::new(path, Problem::Invalid { value: value.to_string(), why: why.into() })
    }

    pub fn unsupported(path: &FieldPath, value: &str, supported: &[&str]) -> Self {
        let supported = supported.iter().map(|value| (*value).to_owned()).collect();
        Self::new(path, Problem::Unsupported { value: value.to_owned(), supported })
    }

    pub fn forbidden(path: &FieldPath, why: impl Into<String>) -> Self {
        Self::new(path, Problem::Forbidden(why.into()))
    }

    /// A create-only member was changed.
    pub fn immutable(path: &FieldPath) -> Self {
        Self::forbidden(path, "field is immutable")
    }

    pub fn too_long(path: &FieldPath, max: usize) -> Self {
        Self::new(path, Problem::TooLong { max })
    }

    pub fn too_many(path: &FieldPath, count: usize, max: usize) -> Self {
        Self::new(path, Problem::TooMany { count, max })
    }

    pub fn duplicate(path: &FieldPath, value: &str) -> Self {
        Self::new(path, Problem::Duplicate(value.to_owned()))
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_kubernetes_words_them() {
        let path = FieldPath::new("properties").child("labels").index(2).child("key");
        assert_eq!(path.as_str(), "properties.labels[2].key");
        for (error, text) in [
            (FieldError::required(&path), "Required value"),
            (FieldError::invalid(&path, "x\"", "not IPv4"), "Invalid value: \"x\\\"\": not IPv4"),
            (
                FieldError::invalid_number(&path, 7, "must be less than or equal to 5"),
                "Invalid value: 7: must be less than or equal to 5",
            ),
            (
                FieldError::unsupported(&path, "c", &["b", "a"]),
                "Unsupported value: \"c\": supported values: \"a\", \"b\"",
            ),
            (FieldError::immutable(&path), "Forbidden: field is immutable"),
            (FieldError::too_long(&path, 15), "Too long: may not be more than 15 bytes"),
            (FieldError::too_many(&path, 9, 3), "Too many: 9: must have at most 3 items"),
            (FieldError::duplicate(&path, "a"), "Duplicate value: \"a\""),
        ] {
            assert_eq!(error.problem.to_string(), text);
        }
    }
}
