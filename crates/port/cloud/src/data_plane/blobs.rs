//! Blobs of a storage account.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method, StatusCode};
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

    /// Creates a container if there is none; returns whether it did.
    pub async fn ensure_container(&self, name: &str) -> Result<bool, CloudError> {
        let query = [("restype", "container")];
        let look = || async { found(self.send(&self.resource(Method::GET, &[name], &query)?).await) };
        if look().await?.is_some() {
            return Ok(false);
        }
        match self.send(&self.resource(Method::PUT, &[name], &query)?).await {
            // Another writer was faster, or the reply to a first attempt was lost.
            Err(error) if error.status() == Some(StatusCode::CONFLICT) && look().await?.is_some() => Ok(true),
            created => created.map(|_| true),
        }
    }

    /// Serves the container `$web` as a static website; returns whether it was not served before.
    pub async fn ensure_static_website(&self) -> Result<bool, CloudError> {
        const ENABLED: &str = "<StaticWebsite><Enabled>true</Enabled>";
        let query = [("restype", "service"), ("comp", "properties")];
        let properties = self.send(&self.resource(Method::GET, &[], &query)?).await?;
        if String::from_utf8_lossy(&properties).contains(ENABLED) {
            return Ok(false);
        }
        let mut out = self.resource(Method::PUT, &[], &query)?;
        out.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>{ENABLED}</StaticWebsite></StorageServiceProperties>"
        );
        out.body = text.into();
        self.send(&out).await.map(|_| true)
    }

    async fn send(&self, out: &Outgoing) -> Result<Bytes, CloudError> {
        let mut progress = self.pipeline.progress();
        let reply = self.pipeline.exchange(out, &mut progress).await?;
        Ok(self.pipeline.accept(out, &progress, reply)?.into_body())
    }

    fn request(&self, method: Method, container: &str, name: &str) -> Result<Outgoing, CloudError> {
        let segments: Vec<&str> = std::iter::once(container).chain(name.split('/')).collect();
        self.resource(method, &segments, &[])
    }

    /// A request on the account, a container or a blob.
    fn resource(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Outgoing, CloudError> {
        let target = format!("{}/{}", self.account.host_str().unwrap_or_default(), segments.join("/"));
        let Some(mut url) = below(&self.account, segments) else {
            return Err(CloudError::new(&method, target, "", Failure::Protocol("the name of the blob")));
        };
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut out = Outgoing::new(method, url, target).with_scope(Scope::new(AUDIENCE));
        out.headers.insert(VERSION, HeaderValue::from_static(BLOB));
        Ok(out)
    }
}
