//! What can go wrong.

/// A certificate, key or request could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The generator refused.
    #[error("{what}")]
    Generate {
        /// What was tried.
        what: &'static str,
        /// Why not.
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
