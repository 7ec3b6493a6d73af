//! What to do about an error of the API.

use std::time::Duration;

use aro_base::Class;

/// Whether trying again can help.
pub fn class_of(error: &kube::Error) -> Class {
    match error {
        kube::Error::Api(status) => match status.code {
            // Somebody else was faster, or the server is busy or away.
            409 | 429 | 500.. => Class::Retry,
            // A type that is not served yet, or an object that is still to come.
            404 => Class::Wait(Duration::from_secs(5)),
            _ => Class::Terminal,
        },
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => Class::Terminal,
        _ => Class::Retry,
    }
}
