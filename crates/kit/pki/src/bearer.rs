//! What a peer's certificate says about its bearer.

use aro_base::Timestamp;
use x509_parser::prelude::FromDer as _;

use crate::{PkiError, Subject};

/// Who holds a certificate, and until when it may be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// Whom it names.
    pub subject: Subject,
    /// The first moment at which it is not valid any more. A connection that was made with it must not live longer: its
    /// bearer has to come back with a new one.
    pub until: Timestamp,
}

impl Bearer {
    /// Reads a certificate (DER). Whether it is to be believed was decided before, in the handshake.
    pub fn of_certificate(der: &[u8]) -> Result<Self, PkiError> {
        const WHAT: PkiError = PkiError::Unreadable("the certificate");
        let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(der).map_err(|_| WHAT)?;
        // The last second belongs to it.
        let until = certificate.validity().not_after.timestamp().saturating_add(1);
        Ok(Self {
            subject: Subject::of_name(certificate.subject()),
            until: Timestamp::from_second(until).unwrap_or(Timestamp::MAX),
        })
    }
}
