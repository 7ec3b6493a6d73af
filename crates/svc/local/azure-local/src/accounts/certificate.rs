//! A client certificate, self-signed, in one file with its key, as `az login --certificate` reads it.

use std::io;
use std::path::Path;

use aro_base::{SignedDuration, Timestamp};
use aro_pki::{Authority, Leaf, RsaBits, Subject, Usage, Validity, expires, generate_rsa};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// How long it is valid.
const LIFE: SignedDuration = SignedDuration::from_hours(2 * 365 * 24);
/// When less than this is left it is replaced.
const RENEW: SignedDuration = SignedDuration::from_hours(60 * 24);

/// The certificate (DER) in a file; made and written if there is none, or one that expires soon. Takes as long as making an
/// RSA key.
pub(super) fn ensure(path: &Path, name: &str, now: Timestamp) -> io::Result<Vec<u8>> {
    let stored = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let good = |text: &String| expires(text).is_some_and(|at| at.duration_since(now) > RENEW);
    if let Some(text) = stored.filter(good) {
        return der(&text);
    }
    let validity = Validity::from_now(now, LIFE);
    // Its issuer is not kept: the directory compares the certificate itself.
    let issuer = Authority::generate(name, validity).map_err(io::Error::other)?;
    let leaf = Leaf {
        subject: Subject::new(name, Vec::<String>::new()),
        dns_names: Vec::new(),
        addresses: Vec::new(),
        usage: Usage::Client,
        validity,
    };
    // Azure's SDKs read RSA keys only.
    let key = generate_rsa(RsaBits::B2048).map_err(io::Error::other)?;
    let issued = issuer.issue_for_key(&leaf, &key).map_err(io::Error::other)?;
    aro_files::replace(path, format!("{}{}", key.expose(), issued.certificate).as_bytes())?;
    der(&issued.certificate)
}

fn der(text: &str) -> io::Result<Vec<u8>> {
    let certificate = CertificateDer::from_pem_slice(text.as_bytes()).map_err(io::Error::other)?;
    Ok(certificate.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_replaced_before_it_expires() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("customer.pem");
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let first = ensure(&path, "customer", now).unwrap();
        assert_eq!(ensure(&path, "customer", now).unwrap(), first);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("-----BEGIN PRIVATE KEY-----") && text.contains("-----BEGIN CERTIFICATE-----")
        );
        let late = now.saturating_add(SignedDuration::from_hours(690 * 24)).unwrap();
        assert_ne!(ensure(&path, "customer", late).unwrap(), first);
    }
}
