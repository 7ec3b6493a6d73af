//! What a resource provider brings along.

use std::fmt::Debug;
use std::future::Future;

use aro_arm::subscription::Subscription;
use http::Method;

use crate::answer::Answer;
use crate::failure::Failure;
use crate::request::Request;

/// A resource provider: the owner of a namespace of resource types.
pub trait Provider: Send + Sync + 'static {
    /// Identifies what a route leads to.
    type Endpoint: Copy + Debug + Send + Sync + 'static;
    /// An api-version.
    type Version: Copy + Debug + Send + Sync + 'static;

    /// What [`Request::version`] holds on routes that need no api-version.
    const UNVERSIONED: Self::Version;

    /// Answers probes, which are not ARM traffic: no ids, no metrics, no audit.
    fn probe(&self, method: &Method, path: &str) -> Option<Answer> {
        let _ = (method, path);
        None
    }

    /// The subscription as ARM notified this provider of it. Called for routes that depend on its state.
    fn subscription(&self, id: &str) -> impl Future<Output = Result<Option<Subscription>, Failure>> + Send {
        let _ = id;
        async { Ok(None) }
    }

    /// Renders a failure. A provider that refuses in words of its own translates here what the pipeline found.
    fn refuse(&self, failure: Failure, path: &str) -> Answer {
        let _ = path;
        failure.into_answer()
    }

    /// Answers a request that passed the pipeline.
    fn answer(
        &self,
        request: &Request<Self::Endpoint, Self::Version>,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send;
}

/// The api-versions of a resource type.
#[derive(Debug)]
pub struct Versions<V> {
    namespace: &'static str,
    resource_type: &'static str,
    served: Vec<(&'static str, V)>,
}

impl<V: Copy> Versions<V> {
    /// The versions of a type, as the query parameter names them. The type is named to callers of any other version.
    pub fn new(
        namespace: &'static str,
        resource_type: &'static str,
        served: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Self {
        Self { namespace, resource_type, served: served.into_iter().collect() }
    }

    /// The namespace of the type.
    pub fn namespace(&self) -> &'static str {
        self.namespace
    }

    /// The version that the query parameter names, without regard to case.
    pub fn negotiate(&self, asked: Option<&str>) -> Result<(&'static str, V), Failure> {
        let asked = asked.ok_or(Failure::MissingApiVersion)?;
        self.served.iter().find(|(name, _)| name.eq_ignore_ascii_case(asked)).copied().ok_or_else(|| {
            let names: Vec<&str> = self.served.iter().map(|(name, _)| *name).collect();
            Failure::UnknownApiVersion {
                namespace: self.namespace,
                resource_type: self.resource_type,
                asked: asked.to_owned(),
                served: names.join(", "),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_version_is_required_matches_in_any_case_and_must_be_served() {
        let versions = Versions::new("N", "t", [("2024-01-01-preview", 1), ("2025-01-01", 2)]);
        assert_eq!(versions.negotiate(Some("2024-01-01-PREVIEW")).unwrap(), ("2024-01-01-preview", 1));
        assert!(matches!(versions.negotiate(None), Err(Failure::MissingApiVersion)));
        let Err(Failure::UnknownApiVersion { served, .. }) = versions.negotiate(Some("2025-01-01-preview"))
        else {
            panic!("a version that is not served")
        };
        assert_eq!(served, "2024-01-01-preview, 2025-01-01");
    }
}
