//! The subject of a certificate or request.

use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Name;

use crate::PkiError;

/// The parts of a subject that Kubernetes reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    /// The user's name.
    pub common_name: String,
    /// The user's groups, in order.
    pub organizations: Vec<String>,
}

impl Subject {
    /// A subject of this name in these groups.
    pub fn new(
        common_name: impl Into<String>,
        organizations: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            common_name: common_name.into(),
            organizations: organizations.into_iter().map(Into::into).collect(),
        }
    }

    /// The subject of a certificate.
    pub fn of_certificate(der: &[u8]) -> Result<Self, PkiError> {
        let parsed = x509_parser::certificate::X509Certificate::from_der(der);
        let (_, certificate) = parsed.map_err(|_| PkiError::Unreadable("the certificate"))?;
        Ok(Self::of_name(certificate.subject()))
    }

    pub(crate) fn of_name(name: &X509Name<'_>) -> Self {
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().ok().map(str::to_owned)
        };
        Self {
            common_name: name.iter_common_name().filter_map(text).last().unwrap_or_default(),
            organizations: name.iter_organization().filter_map(text).collect(),
        }
    }
}
