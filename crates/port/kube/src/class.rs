//! The class of an error of the API.

use std::time::Duration;

use aro_base::Class;

/// The class that decides about the next attempt.
pub fn class_of(error: &kube::Error) -> Class {
    match error {
        kube::Error::Api(status) => match status.code {
            // A conflict with another writer, or the server is busy or unavailable.
            409 | 429 | 500.. => Class::Retry,
            // The type is not served yet, or the object is not created yet.
            404 => Class::Wait(Duration::from_secs(5)),
            _ => Class::Terminal,
        },
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => Class::Terminal,
        _ => Class::Retry,
    }
}
