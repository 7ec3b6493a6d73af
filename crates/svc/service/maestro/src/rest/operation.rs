//! The operation id: the client's, or a generated one.

use http::{HeaderMap, HeaderValue};

/// The longest operation id of a client.
const MAX: usize = 128;

#[derive(Debug, Clone)]
pub(super) struct OperationId(String);

impl OperationId {
    pub(super) const HEADER: &'static str = "x-operation-id";

    pub(super) fn of(headers: &HeaderMap) -> Self {
        let asked = headers.get(Self::HEADER).and_then(|value| value.to_str().ok());
        let usable =
            |id: &&str| !id.is_empty() && id.len() <= MAX && id.bytes().all(|byte| byte.is_ascii_graphic());
        Self(asked.filter(usable).map_or_else(|| uuid::Uuid::now_v7().simple().to_string(), str::to_owned))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static("unknown"))
    }
}
