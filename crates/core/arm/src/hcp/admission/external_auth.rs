//! Admission of external auths.

use crate::FieldError;

/// Whether another external auth may be made when the cluster has so many.
pub fn admit_create(_existing: usize) -> Vec<FieldError> {
    Vec::new()
}
