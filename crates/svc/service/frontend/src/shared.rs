//! What all requests share, and the provider that answers them.

use std::sync::Arc;

use aro_arm::ResourceId;
use aro_arm::hcp::resource::Context;
use aro_arm::hcp::version::ApiVersion;
use aro_arm::subscription::Subscription;
use aro_arm_server::{Answer, Failure, Provider};
use aro_base::{SharedClock, Timestamp};
use aro_control::Queue;
use aro_rp_store::Documents;
use http::Method;
use uuid::Uuid;

use crate::handlers;
use crate::metrics::FrontendMetrics;
use crate::ports::{Preflight, VersionCatalogue};
use crate::rendered::Rendered;
use crate::routes::Endpoint;

/// What all requests share. Any replica can answer any request: nothing here is state.
pub struct Shared {
    pub documents: Documents,
    pub clock: SharedClock,
    pub location: String,
    pub allow_data_plane_identities: bool,
    pub catalogue: Arc<dyn VersionCatalogue>,
    pub preflight: Arc<dyn Preflight>,
    pub metrics: FrontendMetrics,
    pub rendered: Rendered,
    /// Roots of deletions for the cascade controller.
    pub cascades: Queue<ResourceId>,
}

/// A request that passed the pipeline.
pub type Request = aro_arm_server::Request<Endpoint, ApiVersion>;

impl Provider for Shared {
    type Endpoint = Endpoint;
    type Version = ApiVersion;

    const UNVERSIONED: ApiVersion = ApiVersion::NEWEST;

    fn probe(&self, method: &Method, path: &str) -> Option<Answer> {
        handlers::probe(self, method, path)
    }

    async fn subscription(&self, id: &str) -> Result<Option<Subscription>, Failure> {
        let stored = self.documents.find::<Subscription>(&ResourceId::of_subscription(id)).await?;
        Ok(stored.map(|stored| stored.value))
    }

    async fn answer(&self, request: &Request) -> Result<Answer, Failure> {
        handlers::dispatch(self, request).await
    }
}

impl Shared {
    /// What decides about a write beside its body.
    pub fn context<'a>(
        &'a self,
        request: &'a Request,
        id: &'a ResourceId,
        now: Timestamp,
    ) -> Result<Context<'a>, Failure> {
        Ok(Context {
            id,
            location: &self.location,
            system_data: request.system_data()?,
            identity_url: request.caller.identity_url.as_deref(),
            now,
            new_uid: Uuid::new_v4(),
            experimental: request.subscription.as_ref().is_some_and(Subscription::has_experimental_features),
            allow_data_plane_identities: self.allow_data_plane_identities,
            preflight: false,
        })
    }
}
