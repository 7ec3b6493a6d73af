//! Errors.

/// A certificate, key or request could not be created or parsed.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The generator failed.
    #[error("{what}")]
    Generate {
        /// The attempted operation.
        what: &'static str,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// Not a certificate, key or request.
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
}

impl PkiError {
    pub(crate) fn generate(what: &'static str) -> impl Fn(rcgen::Error) -> Self {
        move |source| Self::Generate { what, source }
    }
}
