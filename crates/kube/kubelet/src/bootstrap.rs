//! How a node that has nothing but a bootstrap token gets an identity: it asks for a certificate and waits for it.

use std::time::Duration;

use aro_base::Secret;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::config::AuthInfo;
use kube::runtime::wait::{Condition, await_condition};
use kube::{Api, Client, Config, ResourceExt as _};

/// Why a node could not join.
#[derive(Debug)]
pub enum BootstrapError {
    /// The key or the request could not be made.
    Key(rcgen::Error),
    /// The API server refused something.
    Refused(Box<kube::Error>),
    /// The request was denied.
    Denied(String),
    /// The request was not answered in time.
    Late(Duration),
}

impl std::fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(_) => f.write_str("make a key for the node"),
            Self::Refused(_) => f.write_str("ask for the node's certificate"),
            Self::Denied(why) => write!(f, "the node's certificate was denied: {why}"),
            Self::Late(limit) => write!(f, "the node's certificate was not signed within {limit:?}"),
        }
    }
}

impl std::error::Error for BootstrapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Key(error) => Some(error),
            Self::Refused(error) => Some(error),
            Self::Denied(_) | Self::Late(_) => None,
        }
    }
}

impl From<rcgen::Error> for BootstrapError {
    fn from(error: rcgen::Error) -> Self {
        Self::Key(error)
    }
}

/// Who signs kubelets' certificates.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// Turns a bootstrap token into the identity of a node: token, signing request, certificate. `server` says where the
/// API server is and whom to trust. Returns how to talk to it as `system:node:<name>`.
pub async fn join(
    server: &Config,
    token: &Secret<String>,
    node: &str,
    limit: Duration,
) -> Result<Config, BootstrapError> {
    let mut asking = server.clone();
    asking.auth_info = AuthInfo { token: Some(token.expose().clone().into()), ..AuthInfo::default() };
    let client = Client::try_from(asking).map_err(refused)?;
    let key = rcgen::KeyPair::generate()?;
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let made = api.create(&PostParams::default(), &request(node, &key)?).await.map_err(refused)?;
    let answered = tokio::time::timeout(limit, await_condition(api, &made.name_any(), Answered)).await;
    let answered = answered.map_err(|_| BootstrapError::Late(limit))?;
    let answered = answered.map_err(|error| BootstrapError::Denied(error.to_string()))?;
    let status = answered.and_then(|request| request.status).unwrap_or_default();
    if let Some(denied) =
        status.conditions.iter().flatten().find(|one| one.type_ == "Denied" || one.type_ == "Failed")
    {
        return Err(BootstrapError::Denied(denied.message.clone().unwrap_or_default()));
    }
    let Some(certificate) = status.certificate else {
        return Err(BootstrapError::Denied("the request is gone".to_owned()));
    };
    let mut joined = server.clone();
    joined.auth_info = AuthInfo {
        client_certificate_data: Some(base64(&certificate.0)),
        client_key_data: Some(base64(key.serialize_pem().as_bytes()).into()),
        ..AuthInfo::default()
    };
    Ok(joined)
}

fn refused(error: kube::Error) -> BootstrapError {
    BootstrapError::Refused(Box::new(error))
}

/// Kubeconfigs carry bytes as base64, which is how these serialise.
fn base64(bytes: &[u8]) -> String {
    let text = serde_json::to_value(ByteString(bytes.to_vec())).unwrap_or_default();
    text.as_str().unwrap_or_default().to_owned()
}

fn request(node: &str, key: &rcgen::KeyPair) -> Result<CertificateSigningRequest, BootstrapError> {
    let mut wanted = rcgen::CertificateParams::default();
    wanted.distinguished_name = rcgen::DistinguishedName::new();
    wanted.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    wanted.distinguished_name.push(rcgen::DnType::CommonName, format!("system:node:{node}"));
    let pem = wanted.serialize_request(key)?.pem()?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta { generate_name: Some("node-csr-".to_owned()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: SIGNER.to_owned(),
            usages: Some(vec!["digital signature".to_owned(), "client auth".to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

/// Signed, denied, or gone.
struct Answered;

impl Condition<CertificateSigningRequest> for Answered {
    fn matches_object(&self, request: Option<&CertificateSigningRequest>) -> bool {
        let Some(status) = request.and_then(|request| request.status.as_ref()) else { return false };
        let refused = |one: &k8s_openapi::api::certificates::v1::CertificateSigningRequestCondition| {
            one.type_ == "Denied" || one.type_ == "Failed"
        };
        status.certificate.is_some() || status.conditions.iter().flatten().any(refused)
    }
}
