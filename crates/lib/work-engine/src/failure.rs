//! Why a manifest is not applied.

use std::time::Duration;

/// Why a manifest is not applied. What it says becomes the condition's message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The kind is not served, or not yet.
    #[error("the server doesn't have a resource type \"{0}\"")]
    UnknownKind(String),
    /// The manifest is not an object of Kubernetes.
    #[error("{0}")]
    Malformed(String),
    /// What is to be left alone cannot be understood.
    #[error("{0}")]
    IgnoreFields(String),
    /// The executor of the work lacks the permission.
    #[error("{0}, will try again in 1m0s")]
    Denied(String),
    /// The server said no, or nothing.
    #[error("{}", said(.0))]
    Api(#[source] kube::Error),
}

/// The delay before an attempt that depends on another writer.
pub(crate) const PATIENT_PAUSE: Duration = Duration::from_mins(1);

/// What the server said, without what `kube` wraps around it.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("the server answered with code {}", status.code),
        other => other.to_string(),
    }
}

/// The code of an answer; zero when there was none.
pub(crate) fn code(error: &kube::Error) -> u16 {
    if let kube::Error::Api(status) = error { status.code } else { 0 }
}

/// Other field managers own fields, and the work does not force them.
fn is_contested(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.message.starts_with("Apply failed with"))
}

/// What may help against a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Something may come at any moment that makes it work: a definition, a namespace, another writer's end.
    Soon,
    /// Trying again, now and then.
    Later,
    /// Another writer has to act first; an attempt every minute is enough.
    Patience,
    /// Nothing but another manifest.
    Another,
}

impl Failure {
    /// The word in metrics.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::UnknownKind(_) => "unknown_kind",
            Self::Malformed(_) | Self::IgnoreFields(_) => "malformed",
            Self::Denied(_) => "denied",
            Self::Api(error) => match code(error) {
                0 => "unreachable",
                403 | 401 => "forbidden",
                404 => "missing",
                409 => "conflict",
                400..=499 => "refused",
                _ => "server",
            },
        }
    }

    /// What may help.
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::Malformed(_) | Self::IgnoreFields(_) => Remedy::Another,
            Self::Denied(_) => Remedy::Patience,
            Self::Api(error) if is_contested(error) => Remedy::Patience,
            Self::Api(error) if matches!(code(error), 400 | 405 | 413 | 415 | 422) => Remedy::Later,
            Self::UnknownKind(_) | Self::Api(_) => Remedy::Soon,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16, message: &str) -> Failure {
        Failure::Api(kube::Error::Api(Box::new(Status {
            code,
            message: message.to_owned(),
            ..Status::default()
        })))
    }

    #[test]
    fn each_failure_has_its_remedy_and_its_words() {
        for (failure, class, remedy, says) in [
            (
                Failure::UnknownKind("v9, Kind=X".to_owned()),
                "unknown_kind",
                Remedy::Soon,
                "the server doesn't have a resource type \"v9, Kind=X\"",
            ),
            (Failure::Malformed("no name".to_owned()), "malformed", Remedy::Another, "no name"),
            (Failure::Denied("no".to_owned()), "denied", Remedy::Patience, "no, will try again in 1m0s"),
            (
                answer(404, "namespaces \"n\" not found"),
                "missing",
                Remedy::Soon,
                "namespaces \"n\" not found",
            ),
            (
                answer(409, "Apply failed with 1 conflict: x"),
                "conflict",
                Remedy::Patience,
                "Apply failed with 1 conflict: x",
            ),
            (
                answer(409, "the object has been modified"),
                "conflict",
                Remedy::Soon,
                "the object has been modified",
            ),
            (answer(422, "invalid"), "refused", Remedy::Later, "invalid"),
            (answer(403, "is being terminated"), "forbidden", Remedy::Soon, "is being terminated"),
            (answer(500, ""), "server", Remedy::Soon, "the server answered with code 500"),
        ] {
            assert_eq!((failure.class(), failure.remedy()), (class, remedy), "{failure}");
            assert_eq!(failure.to_string(), says);
        }
    }
}
