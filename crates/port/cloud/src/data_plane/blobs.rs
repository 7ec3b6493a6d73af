//! Blobs of a storage account.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use url::Url;

use super::{below, found};
use crate::api_version::BLOB;
use crate::credential::Scope;
use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Pipeline};

const AUDIENCE: &str = "https://storage.azure.com";
const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const BLOB_TYPE: HeaderName = HeaderName::from_static("x-ms-blob-type");

/// The blobs of one storage account. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Blobs {
    pipeline: Pipeline,
    account: Url,
}

impl Blobs {
    pub(crate) fn new(pipeline: Pipeline, account: Url) -> Self {
        Self { pipeline, account }
    }

    /// Writes a whole blob. Writing the same content again changes nothing.
    pub async fn put(
        &self,
        container: &str,
        name: &str,
        content_type: &str,
        content: Bytes,
    ) -> Result<(), CloudError> {
        let mut out = self.request(Method::PUT, container, name)?;
        let invalid = |_| {
            CloudError::new(&Method::PUT, &out.target, "", Failure::Protocol("the media type of the blob"))
        };
        let content_type = HeaderValue::try_from(content_type).map_err(invalid)?;
        out.headers.insert(CONTENT_TYPE, content_type);
        out.headers.insert(BLOB_TYPE, HeaderValue::from_static("BlockBlob"));
        out.body = content;
        self.send(&out).await.map(drop)
    }

    /// Reads a whole blob; `None` if there is none.
    pub async fn find(&self, container: &str, name: &str) -> Result<Option<Bytes>, CloudError> {
        found(self.send(&self.request(Method::GET, container, name)?).await)
    }

    /// Deletes a blob; one that does not exist is deleted.
    pub async fn delete(&self, container: &str, name: &str) -> Result<(), CloudError> {
        found(self.send(&self.request(Method::DELETE, container, name)?).await).map(drop)
    }

    async fn send(&self, out: &Outgoing) -> Result<Bytes, CloudError> {
        let mut progress = self.pipeline.progress();
        let reply = self.pipeline.exchange(out, &mut progress).await?;
        Ok(self.pipeline.accept(out, &progress, reply)?.into_body())
    }

    fn request(&self, method: Method, container: &str, name: &str) -> Result<Outgoing, CloudError> {
        let target = format!("{}/{container}/{name}", self.account.host_str().unwrap_or_default());
        let segments: Vec<&str> = std::iter::once(container).chain(name.split('/')).collect();
        let Some(url) = below(&self.account, &segments) else {
            return Err(CloudError::new(&method, target, "", Failure::Protocol("the name of the blob")));
        };
        let mut out = Outgoing::new(method, url, target).with_scope(Scope::new(AUDIENCE));
        out.headers.insert(VERSION, HeaderValue::from_static(BLOB));
        Ok(out)
    }
}
