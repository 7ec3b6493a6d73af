//! From records to what `manifests` renders.

use aro_ocm::{ExternalAuth, ExternalAuthId};

use super::environment::Environment;
use super::infrastructure::DATA_PLANE;
use super::target::Target;
use crate::maestro::{Route, Trace};
use crate::manifests::{
    self, Bundle, ClusterInput, Context, Facts, IdentityFacts, PoolInput, Secrets, minutes,
};
use crate::records::{ClusterRecord, ExternalAuthRecord, NodePoolRecord, Provisioned, TraceContext};

/// The trace of a request, for Maestro.
pub(super) fn trace_of(trace: &TraceContext) -> Trace {
    Trace { correlation_id: trace.correlation_id.clone(), traceparent: trace.traceparent.clone() }
}

fn context<'a>(
    environment: &'a Environment,
    target: &'a Target,
    route: &'a Route,
    record: &'a ClusterRecord,
    trace: &'a TraceContext,
) -> Context<'a> {
    Context {
        environment: &environment.name,
        source_id: &route.source,
        id: &record.id,
        name: record.cluster.name.as_deref().unwrap_or_default(),
        domain_prefix: &target.domain_prefix,
        arm_id: target.arm_id.as_str(),
        correlation_id: trace.correlation_id.as_deref(),
        traceparent: trace.traceparent.as_deref(),
    }
}

/// The external auths that a cluster has: those that are not being deleted.
pub(super) fn present(auths: &[ExternalAuthRecord]) -> Vec<ExternalAuth> {
    let present = auths.iter().filter(|auth| auth.deletion.is_none());
    present
        .map(|auth| {
            let id: &ExternalAuthId = &auth.id;
            ExternalAuth { id: Some(id.to_string()), ..auth.auth.clone() }
        })
        .collect()
}

/// The bundles of a cluster, without its node pools.
pub(super) fn cluster(
    environment: &Environment,
    target: &Target,
    route: &Route,
    record: &ClusterRecord,
    made: &Provisioned,
    auths: &[ExternalAuthRecord],
    secrets: &Secrets,
) -> Vec<Bundle> {
    let auths = present(auths);
    let facts = facts(environment, target, record, made);
    manifests::cluster_bundles(&ClusterInput {
        cx: context(environment, target, route, record, &record.trace),
        cluster: &record.cluster,
        generation: record.generation,
        external_auths: &auths,
        facts: &facts,
        secrets,
    })
}

/// The bundle of a node pool.
pub(super) fn pool(
    environment: &Environment,
    target: &Target,
    route: &Route,
    record: &ClusterRecord,
    pool: &NodePoolRecord,
) -> Bundle {
    let version = pool.pool.version.as_ref().or(record.cluster.version.as_ref());
    let arm_id = format!("{}/nodePools/{}", target.arm_id, pool.id);
    manifests::pool_bundle(&PoolInput {
        cx: context(environment, target, route, record, &pool.trace),
        pool_id: &pool.id,
        pool: &pool.pool,
        generation: pool.generation,
        release_image: &release_image(environment, version),
        cluster_subnet: target.subnet.as_str(),
        cluster_drain_minutes: record.cluster.node_drain_grace_period.as_ref().map_or(0.0, minutes),
        arm_id: &arm_id,
    })
}

/// The image of a version: as stored, or as the catalogue has it.
pub(super) fn release_image(environment: &Environment, version: Option<&aro_ocm::Version>) -> String {
    let Some(version) = version else { return String::new() };
    if let Some(image) = version.release_image.as_ref().filter(|image| !image.is_empty()) {
        return image.clone();
    }
    let id = version.id.as_deref().unwrap_or_default();
    environment.catalogue.find(id).map(|release| release.image.clone()).unwrap_or_default()
}

/// The addresses that the service adds to the customer's allow-list: those by which nodes reach the API server.
pub(super) fn internal_cidrs(made: &Provisioned) -> Vec<String> {
    made.egress_address.iter().map(|address| format!("{address}/32")).collect()
}

fn facts(environment: &Environment, target: &Target, record: &ClusterRecord, made: &Provisioned) -> Facts {
    let vault = |url: &url::Url| {
        url.host_str().and_then(|host| host.split('.').next()).unwrap_or_default().to_owned()
    };
    let mut facts = Facts {
        base_domain: target.base_domain.clone(),
        infra_id: target.infra_id.clone(),
        cluster_uuid: made.cluster_uuid.clone().unwrap_or_else(|| target.cluster_uuid()),
        issuer: target.issuer.clone(),
        location: target.location.clone(),
        release_image: release_image(environment, record.cluster.version.as_ref()),
        vnet_id: target.vnet.to_string(),
        identities_vault: vault(&target.identities_vault),
        certificates_vault: vault(&target.certificates_vault),
        vault_tenant: target.service_tenant.clone(),
        vault_reader_client_id: target.vault_reader.clone(),
        ocp_registry: environment
            .layout
            .as_ref()
            .map(|layout| format!("{}.azurecr.io", layout.global.ocp_registry.name()))
            .unwrap_or_default(),
        internal_cidrs: internal_cidrs(made),
        api_certificate: made.certificates.get("api").cloned(),
        ingress_certificate: made.certificates.get("ingress").cloned(),
        ..Facts::default()
    };
    for (operator, identity) in &made.identities {
        if let Some(operator) = operator.strip_prefix(DATA_PLANE) {
            facts.data_plane.insert(operator.to_owned(), identity.client_id.clone());
        } else if let Some(secret) = &identity.secret {
            let known = IdentityFacts { client_id: identity.client_id.clone(), secret: secret.clone() };
            facts.control_plane.insert(operator.clone(), known);
        }
    }
    facts
}
