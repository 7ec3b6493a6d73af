//! Client assertions: a signed statement of the application's identity, instead of a secret.

use std::path::Path;

use aro_base::{Secret, SignedDuration, Timestamp};
use aro_pki::PkiError;
use aro_pki::jws::{Algorithm, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Serialize;

/// Entra accepts assertions of up to a day; ours are used at once.
const LIFE: SignedDuration = SignedDuration::from_mins(10);
/// Clocks differ.
const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// Why a certificate cannot sign assertions.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The key or certificate is not usable.
    #[error("use the certificate and its key")]
    Pki(#[source] PkiError),
    /// There is no certificate in the file.
    #[error("no certificate in the PEM text")]
    NoCertificate,
}

/// A certificate and its key, which sign assertions.
#[derive(Debug)]
pub struct CertificateAssertion {
    key: SigningKey,
    certificate: Vec<u8>,
}

#[derive(Serialize)]
struct Claims<'a> {
    aud: &'a str,
    iss: &'a str,
    sub: &'a str,
    jti: &'a str,
    nbf: i64,
    iat: i64,
    exp: i64,
}

impl CertificateAssertion {
    /// Reads certificate and key (PEM; the certificate first of its chain). RSA keys sign with PS256.
    pub fn from_pem(certificate: &str, key: &Secret<String>) -> Result<Self, CertificateError> {
        Self::with_algorithm(certificate, key, Algorithm::Ps256)
    }

    /// Reads a PKCS #12 file in base64 without a password, as the data plane of managed identities returns it.
    pub fn from_pkcs12(file: &Secret<String>) -> Result<Self, CertificateError> {
        let unreadable = || CertificateError::Pki(PkiError::Unreadable("the PKCS #12 file"));
        let file = STANDARD.decode(file.expose()).map_err(|_| unreadable())?;
        let bundle = aro_pki::pkcs12::read(&file, "").map_err(CertificateError::Pki)?;
        let certificate = bundle.certificates.into_iter().next().ok_or(CertificateError::NoCertificate)?;
        let key = SigningKey::from_pem(&bundle.key, Algorithm::Ps256).map_err(CertificateError::Pki)?;
        Ok(Self { key, certificate })
    }

    /// The same with RS256, for verifiers that know no other.
    pub fn with_algorithm(
        certificate: &str,
        key: &Secret<String>,
        algorithm: Algorithm,
    ) -> Result<Self, CertificateError> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|_| CertificateError::NoCertificate)?
            .to_vec();
        let key = SigningKey::from_pem(key, algorithm).map_err(CertificateError::Pki)?;
        Ok(Self { key, certificate })
    }

    /// Reads the files anew, so that a rotated certificate is used at the next token.
    pub(super) async fn from_files(certificate: &Path, key: &Path) -> Result<Self, super::CredentialError> {
        let certificate = super::read_small(certificate).await?;
        let key = Secret::new(super::read_small(key).await?);
        Self::from_pem(&certificate, &key)
            .map_err(|error| super::CredentialError::Unusable(aro_base::chain(&error).to_string()))
    }

    /// An assertion for a token endpoint. `jti` makes each of them unique.
    pub fn sign(
        &self,
        client_id: &str,
        endpoint: &str,
        jti: &str,
        now: Timestamp,
    ) -> Result<String, PkiError> {
        let second = |moment: Result<Timestamp, _>| moment.unwrap_or(now).as_second();
        let claims = Claims {
            aud: endpoint,
            iss: client_id,
            sub: client_id,
            jti,
            nbf: second(now.saturating_sub(SLACK)),
            iat: now.as_second(),
            exp: second(now.saturating_add(LIFE)),
        };
        self.key.sign_jwt(&claims, Some(&self.certificate))
    }
}

#[cfg(test)]
mod tests {
    use aro_pki::{Authority, Leaf, RsaBits, Subject, Usage, Validity, generate_rsa};
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::Value;

    use super::*;

    fn identity(now: Timestamp) -> (String, Secret<String>) {
        let validity = Validity::from_now(now, SignedDuration::from_hours(24));
        let authority = Authority::generate("ca", validity).unwrap();
        let key = generate_rsa(RsaBits::B2048).unwrap();
        let subject = Subject { common_name: "fpa".to_owned(), organizations: Vec::new() };
        let leaf = Leaf { subject, dns_names: vec![], addresses: vec![], usage: Usage::Client, validity };
        (authority.issue_for_key(&leaf, &key).unwrap().certificate, key)
    }

    fn part(token: &str, index: usize) -> Value {
        let part = token.split('.').nth(index).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    #[test]
    fn an_assertion_names_the_application_and_carries_the_certificate() {
        let now = Timestamp::from_second(1_900_000_000).unwrap();
        let (certificate, key) = identity(now);
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        for (algorithm, name) in [(Algorithm::Ps256, "PS256"), (Algorithm::Rs256, "RS256")] {
            let signer = CertificateAssertion::with_algorithm(&certificate, &key, algorithm).unwrap();
            let endpoint = "https://login.microsoftonline.com/t/oauth2/v2.0/token";
            let token = signer.sign("client", endpoint, "j1", now).unwrap();
            let (header, claims) = (part(&token, 0), part(&token, 1));
            assert_eq!(header["alg"], name);
            assert_eq!(header["x5c"][0], STANDARD.encode(&der));
            let digest = aro_pki::fingerprint(&der);
            let named = URL_SAFE_NO_PAD.decode(header["x5t#S256"].as_str().unwrap()).unwrap();
            let digits = named.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
            assert_eq!(digits.concat(), digest);
            assert_eq!((claims["iss"].as_str(), claims["sub"].as_str()), (Some("client"), Some("client")));
            assert_eq!((claims["aud"].as_str(), claims["jti"].as_str()), (Some(endpoint), Some("j1")));
            assert_eq!(claims["exp"].as_i64(), Some(now.as_second() + 600));
            assert!(claims["nbf"].as_i64() < Some(now.as_second()));
        }
    }

    #[test]
    fn the_credential_of_an_identity_is_a_pkcs12_file() {
        let (certificate, key) = identity(Timestamp::from_second(1_900_000_000).unwrap());
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap().to_vec();
        let bundle = aro_pki::pkcs12::Bundle { key, certificates: vec![der.clone()] };
        let file = Secret::new(STANDARD.encode(aro_pki::pkcs12::write(&bundle, "").unwrap()));
        assert_eq!(CertificateAssertion::from_pkcs12(&file).unwrap().certificate, der);
        assert!(CertificateAssertion::from_pkcs12(&Secret::new("no".to_owned())).is_err());
    }

    #[test]
    fn a_text_without_certificate_is_refused() {
        let (_, key) = identity(Timestamp::from_second(1_900_000_000).unwrap());
        assert!(matches!(CertificateAssertion::from_pem("", &key), Err(CertificateError::NoCertificate)));
    }
}
