//! Everything in memory, by every name that requests use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use crate::model::{Application, Tenant};
use crate::resources::normal;

/// The read model.
#[derive(Default)]
pub(crate) struct ReadModel {
    tenants: BTreeMap<Uuid, Arc<Tenant>>,
    domains: HashMap<String, Uuid>,
    applications: BTreeMap<Uuid, Arc<Application>>,
    /// Object ids of applications and of service principals in their home tenant.
    objects: HashMap<Uuid, Uuid>,
    /// Managed identities by tenant and lower-cased resource id.
    identities: HashMap<(Uuid, String), Uuid>,
    /// Applications by identifier URI.
    audiences: HashMap<String, Uuid>,
}

impl ReadModel {
    pub(crate) fn put_tenant(&mut self, tenant: Tenant) {
        self.domains.retain(|_, id| *id != tenant.id);
        for domain in &tenant.domains {
            self.domains.insert(domain.to_ascii_lowercase(), tenant.id);
        }
        self.tenants.insert(tenant.id, Arc::new(tenant));
    }

    pub(crate) fn put_application(&mut self, application: Application) -> Arc<Application> {
        self.remove_application(application.app_id);
        let app_id = application.app_id;
        self.objects.insert(application.object_id, app_id);
        self.objects.insert(application.principal_id, app_id);
        if let Some(resource_id) = application.resource_id() {
            self.identities.insert((application.tenant, resource_id.to_ascii_lowercase()), app_id);
        }
        for uri in &application.identifier_uris {
            self.audiences.insert(normal(uri), app_id);
        }
        let application = Arc::new(application);
        self.applications.insert(app_id, application.clone());
        application
    }

    pub(crate) fn remove_application(&mut self, app_id: Uuid) {
        if self.applications.remove(&app_id).is_none() {
            return;
        }
        self.objects.retain(|_, id| *id != app_id);
        self.identities.retain(|_, id| *id != app_id);
        self.audiences.retain(|_, id| *id != app_id);
    }

    pub(crate) fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        let id = match Uuid::try_parse(name) {
            Ok(id) => id,
            Err(_) => *self.domains.get(&name.to_ascii_lowercase())?,
        };
        self.tenants.get(&id).cloned()
    }

    pub(crate) fn tenants(&self) -> Vec<Arc<Tenant>> {
        self.tenants.values().cloned().collect()
    }

    pub(crate) fn has_tenant(&self, id: Uuid) -> bool {
        self.tenants.contains_key(&id)
    }

    pub(crate) fn application(&self, app_id: Uuid) -> Option<Arc<Application>> {
        self.applications.get(&app_id).cloned()
    }

    /// The application that tokens for this (normalised) audience are for.
    pub(crate) fn application_of_audience(&self, audience: &str) -> Option<Arc<Application>> {
        let by_id = Uuid::try_parse(audience.strip_prefix("api://").unwrap_or(audience)).ok();
        let app_id = by_id.or_else(|| self.audiences.get(audience).copied())?;
        self.application(app_id)
    }

    pub(crate) fn identity(&self, tenant: Uuid, resource_id: &str) -> Option<Arc<Application>> {
        let key = (tenant, resource_id.to_ascii_lowercase());
        self.identities.get(&key).and_then(|app_id| self.application(*app_id))
    }

    /// The application whose own object id this is, in its home tenant.
    pub(crate) fn application_object(&self, tenant: Uuid, object_id: Uuid) -> Option<Arc<Application>> {
        let application = self.application(*self.objects.get(&object_id)?)?;
        (application.object_id == object_id && application.tenant == tenant).then_some(application)
    }

    pub(crate) fn principal(&self, tenant: Uuid, object_id: Uuid) -> Option<Arc<Application>> {
        let home = self.objects.get(&object_id).and_then(|app_id| self.application(*app_id));
        let is_it = |application: &Arc<Application>| application.principal_in(tenant) == Some(object_id);
        // Principals in other tenants have derived ids; few applications have any.
        home.filter(is_it).or_else(|| {
            let mut others = self.applications.values().filter(|application| application.multi_tenant);
            others.find(|found| is_it(found)).cloned()
        })
    }

    /// Applications at home in a tenant.
    pub(crate) fn applications_of(&self, tenant: Uuid) -> Vec<Arc<Application>> {
        self.applications.values().filter(|application| application.tenant == tenant).cloned().collect()
    }

    /// Applications that have a service principal in a tenant.
    pub(crate) fn principals_of(&self, tenant: Uuid) -> Vec<Arc<Application>> {
        let present = |application: &&Arc<Application>| application.principal_in(tenant).is_some();
        self.applications.values().filter(present).cloned().collect()
    }
}
