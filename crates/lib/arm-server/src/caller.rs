//! The caller and the ids of a request, from the headers that ARM adds.
//!
//! These headers are trusted: a provider must be reachable only through an authenticating ingress or from loopback.

use http::HeaderMap;
use uuid::Uuid;

use crate::links::ClientUrl;
use crate::precondition::Preconditions;

/// The headers of one request that ARM defines.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Made for this request; answered as `x-ms-request-id`.
    pub request_id: Uuid,
    pub client_request_id: Option<String>,
    pub correlation_id: Option<String>,
    pub return_client_request_id: bool,
    pub principal_name: Option<String>,
    pub tenant_id: Option<String>,
    pub object_id: Option<String>,
    pub identity_url: Option<String>,
    pub notification_uri: Option<String>,
    pub trace_parent: Option<String>,
    pub system_data: Option<String>,
    pub user_agent: UserAgent,
    pub preconditions: Preconditions,
    referer: Option<String>,
    forwarded_proto: Option<String>,
    host: Option<String>,
    path_and_query: String,
}

/// The few clients that metrics distinguish; all others share one label, so that callers cannot make metrics grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UserAgent {
    AsoController,
    ClusterApiProvider,
    Other,
}

impl UserAgent {
    fn of(text: Option<&str>) -> Self {
        match text {
            Some(text) if text.contains("aso-controller/") => Self::AsoController,
            Some(text) if text.contains("cluster-api-provider-azure/") => Self::ClusterApiProvider,
            _ => Self::Other,
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::AsoController => "aso-controller/",
            Self::ClusterApiProvider => "cluster-api-provider-azure/",
            Self::Other => "other",
        }
    }
}

impl Caller {
    pub fn new(headers: &HeaderMap, path_and_query: &str, request_id: Uuid) -> Self {
        let text = |name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
        };
        let owned = |name: &str| text(name).map(str::to_owned);
        Self {
            request_id,
            client_request_id: owned("x-ms-client-request-id"),
            correlation_id: owned("x-ms-correlation-request-id"),
            return_client_request_id: text("x-ms-return-client-request-id")
                .is_some_and(|value| value.eq_ignore_ascii_case("true")),
            principal_name: owned("x-ms-client-principal-name"),
            tenant_id: owned("x-ms-home-tenant-id"),
            object_id: owned("x-ms-client-object-id"),
            identity_url: owned("x-ms-identity-url"),
            notification_uri: owned("azure-asyncnotificationuri"),
            trace_parent: owned("traceparent"),
            system_data: owned("x-ms-arm-resource-system-data"),
            user_agent: UserAgent::of(text("user-agent")),
            preconditions: Preconditions::new(text("if-match"), text("if-none-match")),
            referer: owned("referer"),
            forwarded_proto: owned("x-forwarded-proto"),
            host: owned("host"),
            path_and_query: path_and_query.to_owned(),
        }
    }

    /// The address the client used.
    pub fn url(&self) -> ClientUrl {
        ClientUrl::new(
            self.referer.as_deref(),
            self.forwarded_proto.as_deref(),
            self.host.as_deref(),
            &self.path_and_query,
        )
    }
}
