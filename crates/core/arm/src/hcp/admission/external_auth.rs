//! Admission of external auths.

use crate::{FieldError, FieldPath};

/// Whether another external auth may be made when the cluster has so many.
pub fn admit_create(existing: usize) -> Vec<FieldError> {
    if existing == 0 {
        return Vec::new();
    }
    vec![FieldError::forbidden(&FieldPath::new("name"), "a cluster can have only one external auth")]
}
