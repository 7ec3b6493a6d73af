//! The bearer of a peer's certificate.

use aro_base::Timestamp;
use x509_parser::prelude::FromDer as _;

use crate::{PkiError, Subject};

/// The subject of a certificate and its expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The subject.
    pub subject: Subject,
    /// The first moment at which the certificate is not valid any more. A connection made with it must not last longer: its
    /// bearer has to reconnect with a new one.
    pub until: Timestamp,
}

impl Bearer {
    /// Parses a certificate (DER), which the handshake has verified.
    pub fn of_certificate(der: &[u8]) -> Result<Self, PkiError> {
        const WHAT: PkiError = PkiError::Unreadable("the certificate");
        let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(der).map_err(|_| WHAT)?;
        // The last second is included.
        let until = certificate.validity().not_after.timestamp().saturating_add(1);
        Ok(Self {
            subject: Subject::of_name(certificate.subject()),
            until: Timestamp::from_second(until).unwrap_or(Timestamp::MAX),
        })
    }
}
