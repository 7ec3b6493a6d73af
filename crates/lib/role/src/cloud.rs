//! The cloud as a role sees it: one client, and the two identities that the service acts with.

use std::collections::HashMap;
use std::sync::Arc;

use aro_cloud::{Cloud, Proof, SharedCredential};
use aro_region_layout::RegionLayout;
use parking_lot::Mutex;
use url::Url;

/// Tenants whose credential is kept. A customer beyond that costs one more token request.
const MAX_TENANTS: usize = 10_000;

/// The cloud that the service runs in.
#[derive(Debug, Clone)]
pub struct CloudAccess {
    /// The client.
    pub cloud: Cloud,
    /// The role's identity in the service's own tenant.
    pub service: SharedCredential,
    /// The application that acts in the tenants of customers.
    pub first_party: FirstParty,
    /// The names of the region's resources.
    pub layout: Arc<RegionLayout>,
    /// Where permissions are checked.
    pub check_access: Url,
    /// The audience of tokens for the data plane of managed identities.
    pub identity_audience: String,
}

/// The first-party application: one application with a principal in the tenant of every customer. It acts in the
/// subscriptions that are registered with the resource provider, and may request the credentials of managed identities.
#[derive(Clone)]
pub struct FirstParty(Arc<Inner>);

struct Inner {
    cloud: Cloud,
    client_id: String,
    proof: Proof,
    credentials: Mutex<HashMap<String, SharedCredential>>,
}

impl std::fmt::Debug for FirstParty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FirstParty({})", self.0.client_id)
    }
}

impl FirstParty {
    /// The application with this id; `proof` shows that the caller is the application.
    pub fn new(cloud: Cloud, client_id: impl Into<String>, proof: Proof) -> Self {
        let credentials = Mutex::new(HashMap::new());
        Self(Arc::new(Inner { cloud, client_id: client_id.into(), proof, credentials }))
    }

    /// Its client id.
    pub fn client_id(&self) -> &str {
        &self.0.client_id
    }

    /// Its credential in a tenant; tokens are cached with it.
    pub fn in_tenant(&self, tenant: &str) -> SharedCredential {
        let tenant = tenant.to_lowercase();
        let mut credentials = self.0.credentials.lock();
        if let Some(known) = credentials.get(&tenant) {
            return known.clone();
        }
        if credentials.len() >= MAX_TENANTS {
            credentials.clear();
        }
        let made = self.0.cloud.application(&tenant, &self.0.client_id, self.0.proof.clone());
        credentials.insert(tenant, made.clone());
        made
    }
}
