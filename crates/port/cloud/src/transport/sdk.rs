//! The transport as the Azure SDK takes it, so that its credentials use our connections and our trust.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Request as SdkRequest, StatusCode};
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use parking_lot::Mutex;

use super::{Transport, TransportError};

/// Gives requests of the Azure SDK to a [`Transport`].
#[derive(Debug)]
pub struct SdkTransport {
    transport: Arc<dyn Transport>,
    within: Duration,
    refusal: Mutex<Option<Response<Bytes>>>,
}

impl SdkTransport {
    /// Each request may take this long.
    pub fn new(transport: Arc<dyn Transport>, within: Duration) -> Self {
        Self { transport, within, refusal: Mutex::new(None) }
    }

    /// Takes the last reply that was not a success. The SDK does not read every error body that services send.
    pub fn take_refusal(&self) -> Option<Response<Bytes>> {
        self.refusal.lock().take()
    }
}

fn convert(request: &SdkRequest) -> Result<Request<Bytes>, TransportError> {
    const HEADER: TransportError = TransportError::Invalid("a header");
    // Streams are for uploads, which credentials do not make.
    let Body::Bytes(body) = request.body() else {
        return Err(TransportError::Invalid("its body is a stream"));
    };
    let mut converted = Request::builder().method(request.method().as_str()).uri(request.url().as_str());
    for (name, value) in request.headers().iter() {
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| HEADER)?;
        value.set_sensitive(name.as_str() == "authorization");
        converted = converted.header(name.as_str(), value);
    }
    converted.body(body.clone()).map_err(|_| TransportError::Invalid("its URL or a header"))
}

#[async_trait]
impl HttpClient for SdkTransport {
    async fn execute_request(&self, request: &SdkRequest) -> azure_core::Result<AsyncRawResponse> {
        let failed = |error: TransportError| Error::new(ErrorKind::Io, error);
        let request = convert(request).map_err(failed)?;
        let reply = self.transport.send(request, self.within).await.map_err(failed)?;
        if !reply.status().is_success() {
            *self.refusal.lock() = Some(reply.clone());
        }
        let (head, body) = reply.into_parts();
        let mut headers = Headers::new();
        for (name, value) in &head.headers {
            if let Ok(value) = value.to_str() {
                headers.insert(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(AsyncRawResponse::from_bytes(StatusCode::from(head.status.as_u16()), headers, body))
    }
}
