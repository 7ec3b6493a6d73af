//! Changes: into the store first, then into the read model.

use std::sync::Arc;

use aro_base::{Secret, SignedDuration, Timestamp};
use aro_pki::Bearer;
use aro_store::{Attempts, StoreError, Typed};
use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use super::{Directory, Identity};
use crate::documents::{application_place, tenant_place};
use crate::model::{
    Application, ApplicationSpec, CertificateRecord, FederatedCredential, Origin, PasswordRecord, Tenant,
    derived_id,
};
use crate::{DirectoryError, secrets};

/// Entra's limits are of this order.
const MOST_CREDENTIALS: usize = 100;
const MOST_FEDERATED: usize = 20;
/// Live certificates of one managed identity; the oldest go.
const MOST_ISSUED: usize = 32;
const FIVE_YEARS: SignedDuration = SignedDuration::from_hours(5 * 365 * 24);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}

/// What is stored of a certificate (DER).
pub(crate) fn certificate_record(der: &[u8]) -> Result<CertificateRecord, DirectoryError> {
    let hash = |algorithm: &'static Algorithm| hex(digest(algorithm, der).as_ref());
    Ok(CertificateRecord {
        key_id: Uuid::new_v4(),
        sha1: hash(&SHA1_FOR_LEGACY_USE_ONLY),
        sha256: hash(&SHA256),
        certificate: STANDARD.encode(der),
        not_after: Bearer::of_certificate(der)?.until,
    })
}

impl Directory {
    /// Makes sure that a tenant exists, with these names.
    pub async fn ensure_tenant(&self, tenant: Tenant) -> Result<(), DirectoryError> {
        let _writer = self.0.writes.lock().await;
        let tenants = &self.0.documents.tenants;
        let place = tenant_place(tenant.id);
        match tenants.find(&place.key).await? {
            Some(found) if found.value == tenant => {}
            Some(found) => {
                let replace = tenants.replace(&Typed { value: tenant.clone(), ..found })?;
                tenants.store().write(tenants.batch(&place.key.partition).with(replace)).await?;
            }
            None => {
                let create = tenants.create(place.names, &tenant)?;
                tenants.store().write(tenants.batch(&place.key.partition).with(create)).await?;
            }
        }
        self.0.model.write().put_tenant(tenant);
        Ok(())
    }

    /// Makes sure that an application exists, that the given secrets and certificates work, and that the rest is as given.
    /// Credentials that were added otherwise stay.
    pub async fn ensure_application(
        &self,
        spec: ApplicationSpec,
    ) -> Result<Arc<Application>, DirectoryError> {
        self.check_tenant(spec.tenant)?;
        let tenant = spec.tenant.to_string();
        let app_id = spec.app_id.unwrap_or_else(|| derived_id(&["application", &tenant, &spec.display_name]));
        let now = self.now();
        self.put_application(spec.tenant, app_id, |found| {
            let mut application = found.unwrap_or_else(|| {
                registered(spec.tenant, app_id, derived_id(&["object", &app_id.to_string()]), now)
            });
            application.display_name.clone_from(&spec.display_name);
            application.identifier_uris.clone_from(&spec.identifier_uris);
            application.federated.clone_from(&spec.federated);
            application.multi_tenant = spec.multi_tenant;
            application.directory_writer = spec.directory_writer;
            application.token_version = spec.token_version;
            application.has_principal = true;
            for secret in &spec.secrets {
                let works =
                    |record: &PasswordRecord| record.end > now && secrets::is_secret(record, secret.expose());
                if !application.passwords.iter().any(works) {
                    application.passwords.push(secrets::record(secret, None, now, end_of(now))?);
                }
            }
            for der in &spec.certificates {
                add_certificate(&mut application, certificate_record(der)?);
            }
            Ok(application)
        })
        .await
    }

    /// Registers an application under a new client id, without a service principal: Graph's `POST /applications`.
    pub(crate) async fn create_application(
        &self,
        tenant: Uuid,
        fill: impl Fn(&mut Application) -> Result<(), DirectoryError>,
    ) -> Result<Arc<Application>, DirectoryError> {
        let now = self.now();
        let (app_id, object_id) = (Uuid::new_v4(), Uuid::new_v4());
        self.put_application(tenant, app_id, |_| {
            let mut application =
                Application { has_principal: false, ..registered(tenant, app_id, object_id, now) };
            fill(&mut application)?;
            Ok(application)
        })
        .await
    }

    /// Changes an application that exists.
    pub(crate) async fn change_application(
        &self,
        tenant: Uuid,
        app_id: Uuid,
        change: impl Fn(&mut Application) -> Result<(), DirectoryError>,
    ) -> Result<Arc<Application>, DirectoryError> {
        self.put_application(tenant, app_id, |found| {
            let mut application = found.ok_or(DirectoryError::UnknownApplication(app_id))?;
            change(&mut application)?;
            Ok(application)
        })
        .await
    }

    /// Adds a new secret and returns it with its record: the only time that it can be read.
    pub(crate) async fn add_password(
        &self,
        tenant: Uuid,
        app_id: Uuid,
        display_name: Option<String>,
        end: Option<Timestamp>,
    ) -> Result<(Secret<String>, PasswordRecord), DirectoryError> {
        let now = self.now();
        let secret = secrets::generate()?;
        let record = secrets::record(&secret, display_name, now, end.unwrap_or_else(|| end_of(now)))?;
        self.change_application(tenant, app_id, |application| {
            application.passwords.push(record.clone());
            Ok(())
        })
        .await?;
        Ok((secret, record))
    }

    /// Registers the identity of a resource. Ids are derived, so that the same resource has the same ones after a restart and
    /// when it is created again.
    pub async fn register_identity(
        &self,
        tenant: Uuid,
        resource_id: &str,
        name: &str,
    ) -> Result<Identity, DirectoryError> {
        self.check_tenant(tenant)?;
        let id = |kind: &str| derived_id(&[kind, &tenant.to_string(), resource_id]);
        let (app_id, now) = (id("identity-client"), self.now());
        if self.find_application(app_id).is_none() && !self.is_home(tenant) {
            self.0.prepared.want();
        }
        let application = self
            .put_application(tenant, app_id, |found| {
                let mut application = found.unwrap_or_else(|| Application {
                    principal_id: id("identity-principal"),
                    origin: Origin::ManagedIdentity { resource_id: resource_id.to_owned() },
                    ..registered(tenant, app_id, id("identity-object"), now)
                });
                name.clone_into(&mut application.display_name);
                Ok(application)
            })
            .await?;
        Ok(Identity { principal_id: application.principal_id, client_id: application.app_id })
    }

    /// Whether it is the tenant of the application that asks for credentials of identities: its own are never asked for.
    fn is_home(&self, tenant: Uuid) -> bool {
        let caller = self.0.settings.identity_caller.and_then(|caller| self.find_application(caller));
        caller.is_none_or(|caller| caller.tenant == tenant)
    }

    /// Removes the identity of a resource. One that does not exist is fine.
    pub async fn remove_identity(&self, tenant: Uuid, resource_id: &str) -> Result<(), DirectoryError> {
        match self.find_identity(tenant, resource_id) {
            Some(application) => self.delete_application(tenant, application.app_id).await,
            None => Ok(()),
        }
    }

    /// Sets all federated credentials of an application or identity.
    pub async fn set_federated_credentials(
        &self,
        client_id: Uuid,
        credentials: Vec<FederatedCredential>,
    ) -> Result<(), DirectoryError> {
        let found = self.find_application(client_id).ok_or(DirectoryError::UnknownApplication(client_id))?;
        self.change_application(found.tenant, client_id, |application| {
            application.federated.clone_from(&credentials);
            Ok(())
        })
        .await?;
        Ok(())
    }

    /// Records a certificate that was issued for a managed identity.
    pub(crate) async fn record_issued(
        &self,
        application: &Application,
        der: &[u8],
    ) -> Result<(), DirectoryError> {
        let (record, now) = (certificate_record(der)?, self.now());
        self.change_application(application.tenant, application.app_id, |application| {
            application.certificates.retain(|known| known.not_after > now);
            let surplus = (application.certificates.len() + 1).saturating_sub(MOST_ISSUED);
            application.certificates.drain(..surplus);
            add_certificate(application, record.clone());
            Ok(())
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn delete_application(&self, tenant: Uuid, app_id: Uuid) -> Result<(), DirectoryError> {
        let _writer = self.0.writes.lock().await;
        let applications = &self.0.documents.applications;
        let place = application_place(tenant, app_id);
        if let Some(found) = applications.find(&place.key).await? {
            let delete = applications.delete(&found);
            applications.store().write(applications.batch(&place.key.partition).with(delete)).await?;
        }
        self.0.model.write().remove_application(app_id);
        self.0.issued.forget(app_id);
        Ok(())
    }

    fn check_tenant(&self, tenant: Uuid) -> Result<(), DirectoryError> {
        if self.0.model.read().has_tenant(tenant) {
            Ok(())
        } else {
            Err(DirectoryError::UnknownTenant(tenant))
        }
    }

    /// Writes what `change` makes of the stored application, unless it is the same.
    async fn put_application(
        &self,
        tenant: Uuid,
        app_id: Uuid,
        change: impl Fn(Option<Application>) -> Result<Application, DirectoryError>,
    ) -> Result<Arc<Application>, DirectoryError> {
        let _writer = self.0.writes.lock().await;
        let applications = &self.0.documents.applications;
        let mut attempts = Attempts::default();
        loop {
            let place = application_place(tenant, app_id);
            let found = applications.find(&place.key).await?;
            let changed = change(found.as_ref().map(|found| found.value.clone()))?;
            check(&changed)?;
            let op = match found {
                Some(found) if found.value == changed => {
                    return Ok(self.0.model.write().put_application(changed));
                }
                Some(found) => applications.replace(&Typed { value: changed.clone(), ..found })?,
                None => applications.create(place.names, &changed)?,
            };
            match applications.store().write(applications.batch(&place.key.partition).with(op)).await {
                Ok(_) => return Ok(self.0.model.write().put_application(changed)),
                Err(StoreError::Conflict { .. }) if attempts.wait_for_next().await => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn end_of(start: Timestamp) -> Timestamp {
    start.saturating_add(FIVE_YEARS).unwrap_or(Timestamp::MAX)
}

fn registered(tenant: Uuid, app_id: Uuid, object_id: Uuid, now: Timestamp) -> Application {
    Application {
        app_id,
        object_id,
        principal_id: derived_id(&["principal", &tenant.to_string(), &app_id.to_string()]),
        has_principal: true,
        tenant,
        display_name: String::new(),
        identifier_uris: Vec::new(),
        origin: Origin::Registered,
        multi_tenant: false,
        directory_writer: false,
        token_version: 1,
        federated: Vec::new(),
        created: now,
        passwords: Vec::new(),
        certificates: Vec::new(),
    }
}

fn add_certificate(application: &mut Application, record: CertificateRecord) {
    if !application.certificates.iter().any(|known| known.sha256 == record.sha256) {
        application.certificates.push(record);
    }
}

fn check(application: &Application) -> Result<(), DirectoryError> {
    if application.passwords.len() > MOST_CREDENTIALS {
        return Err(DirectoryError::TooMany("secrets"));
    }
    if application.certificates.len() > MOST_CREDENTIALS {
        return Err(DirectoryError::TooMany("certificates"));
    }
    if application.federated.len() > MOST_FEDERATED {
        return Err(DirectoryError::TooMany("federated credentials"));
    }
    if application.display_name.len() > 256 || application.identifier_uris.len() > MOST_CREDENTIALS {
        return Err(DirectoryError::Invalid("the application's names are too long"));
    }
    Ok(())
}
