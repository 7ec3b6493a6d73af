//! Self-signed certificates by a policy.

use aro_base::Timestamp;
use aro_pki::KeyPem;
use jiff::{Span, tz::TimeZone};
use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType,
};
use time::OffsetDateTime;

use super::error::VaultError;
use super::policy::Policy;

/// A certificate and the request that an issuer would have got (both DER).
pub(super) struct SelfSigned {
    pub certificate: Vec<u8>,
    pub request: Vec<u8>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

fn moment(timestamp: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(timestamp.as_second()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Signs a certificate for a key with the key itself.
pub(super) fn sign(policy: &Policy, key: &KeyPem, now: Timestamp) -> Result<SelfSigned, VaultError> {
    let pair = KeyPair::from_pem(key.expose()).map_err(|_| VaultError::internal("read a new key"))?;
    let later = now.to_zoned(TimeZone::UTC).checked_add(Span::new().months(policy.months));
    let not_after = later.map_err(|_| VaultError::property("policy.x509_props.validity_months"))?.timestamp();
    let not_before = now.saturating_sub(jiff::SignedDuration::from_mins(10)).unwrap_or(now);
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name(&policy.subject)?;
    params.not_before = moment(not_before);
    params.not_after = moment(not_after);
    params.subject_alt_names = alternative_names(policy)?;
    params.key_usages = key_usages(policy)?;
    params.extended_key_usages = extended_usages(policy)?;
    let refused = |_| VaultError::bad("The policy does not describe a valid certificate");
    let certificate = params.self_signed(&pair).map_err(refused)?;
    // A request names the subject; what validity and usage it gets is the issuer's to decide.
    let mut request = CertificateParams::default();
    request.distinguished_name = params.distinguished_name;
    request.subject_alt_names = params.subject_alt_names;
    let request = request.serialize_request(&pair).map_err(refused)?;
    Ok(SelfSigned {
        certificate: certificate.der().to_vec(),
        request: request.der().to_vec(),
        not_before,
        not_after,
    })
}

fn alternative_names(policy: &Policy) -> Result<Vec<SanType>, VaultError> {
    let text = |name: &String| {
        Ia5String::try_from(name.as_str()).map_err(|_| VaultError::property("policy.x509_props.sans"))
    };
    let dns = policy.dns_names.iter().map(|name| text(name).map(SanType::DnsName));
    let emails = policy.emails.iter().map(|name| text(name).map(SanType::Rfc822Name));
    dns.chain(emails).collect()
}

/// `CN=name, O=organization`: parts separated by commas; a value may be in double quotes.
fn distinguished_name(subject: &str) -> Result<DistinguishedName, VaultError> {
    let wrong = || VaultError::property("policy.x509_props.subject");
    let mut name = DistinguishedName::new();
    let mut quoted = false;
    let parts = subject.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let (kind, value) = part.split_once('=').ok_or_else(wrong)?;
        let kind = match kind.trim().to_ascii_uppercase().as_str() {
            "CN" => DnType::CommonName,
            "O" => DnType::OrganizationName,
            "OU" => DnType::OrganizationalUnitName,
            "C" => DnType::CountryName,
            "L" => DnType::LocalityName,
            "S" | "ST" => DnType::StateOrProvinceName,
            _ => return Err(wrong()),
        };
        let value = value.trim().trim_matches('"');
        if value.is_empty() {
            return Err(wrong());
        }
        name.push(kind, value);
    }
    Ok(name)
}

fn key_usages(policy: &Policy) -> Result<Vec<KeyUsagePurpose>, VaultError> {
    if policy.key_usage.is_empty() {
        return Ok(vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment]);
    }
    let purpose = |name: &String| match name.as_str() {
        "digitalSignature" => Ok(KeyUsagePurpose::DigitalSignature),
        "nonRepudiation" => Ok(KeyUsagePurpose::ContentCommitment),
        "keyEncipherment" => Ok(KeyUsagePurpose::KeyEncipherment),
        "dataEncipherment" => Ok(KeyUsagePurpose::DataEncipherment),
        "keyAgreement" => Ok(KeyUsagePurpose::KeyAgreement),
        "keyCertSign" => Ok(KeyUsagePurpose::KeyCertSign),
        "cRLSign" => Ok(KeyUsagePurpose::CrlSign),
        "encipherOnly" => Ok(KeyUsagePurpose::EncipherOnly),
        "decipherOnly" => Ok(KeyUsagePurpose::DecipherOnly),
        _ => Err(VaultError::property("policy.x509_props.key_usage")),
    };
    policy.key_usage.iter().map(purpose).collect()
}

fn extended_usages(policy: &Policy) -> Result<Vec<ExtendedKeyUsagePurpose>, VaultError> {
    if policy.extended_usage.is_empty() {
        return Ok(vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]);
    }
    let purpose = |oid: &String| match oid.as_str() {
        "1.3.6.1.5.5.7.3.1" => Ok(ExtendedKeyUsagePurpose::ServerAuth),
        "1.3.6.1.5.5.7.3.2" => Ok(ExtendedKeyUsagePurpose::ClientAuth),
        "1.3.6.1.5.5.7.3.3" => Ok(ExtendedKeyUsagePurpose::CodeSigning),
        "1.3.6.1.5.5.7.3.4" => Ok(ExtendedKeyUsagePurpose::EmailProtection),
        "1.3.6.1.5.5.7.3.8" => Ok(ExtendedKeyUsagePurpose::TimeStamping),
        other => {
            let digits: Option<Vec<u64>> = other.split('.').map(|part| part.parse().ok()).collect();
            // The first two share one number in the encoding.
            let valid = digits
                .filter(|digits| matches!(digits.as_slice(), [0..=1, 0..=39, _, ..] | [2, 0..=47, _, ..]));
            valid
                .map(ExtendedKeyUsagePurpose::Other)
                .ok_or_else(|| VaultError::property("policy.x509_props.ekus"))
        }
    };
    policy.extended_usage.iter().map(purpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read_part_by_part() {
        let name = distinguished_name("CN=a.example, O=\"Red, Hat\", C=US").unwrap();
        let parts: Vec<String> = name.iter().map(|(kind, value)| format!("{kind:?}={value:?}")).collect();
        assert_eq!(parts.len(), 3);
        assert!(parts[1].contains("Red, Hat"), "{parts:?}");
        assert!(distinguished_name("").is_ok());
        for wrong in ["CN", "CN=", "X=1", "a"] {
            assert!(distinguished_name(wrong).is_err(), "{wrong}");
        }
    }
}
