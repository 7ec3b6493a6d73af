//! The creation of a cluster, as a saga.

use std::sync::Arc;
use std::time::Duration;

use aro_base::Class;
use aro_base::Classify as _;
use aro_control::saga::{Saga, StepError, Steps};
use aro_decisions::Outcome as Decided;
use aro_ocm::ClusterState;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::checks;
use super::environment::Environment;
use super::infrastructure::Infrastructure;
use super::render::{self, trace_of};
use super::target::Target;
use crate::maestro::Route;
use crate::records::{ClusterRecord, Provisioned, cluster_key};

/// The name of the step whose failure is one of the customer's resources.
pub(super) const CHECKS: &str = "checks";

/// The creation of a cluster.
pub(super) struct CreateCluster;

/// One pass of it.
pub(super) struct CreateCx {
    pub(super) environment: Arc<Environment>,
    pub(super) infrastructure: Arc<dyn Infrastructure>,
    pub(super) target: Target,
    pub(super) route: Route,
    pub(super) record: ClusterRecord,
}

impl Saga for CreateCluster {
    const NAME: &'static str = "clusters.create";
    const VERSION: u16 = 1;
    type State = Provisioned;
    type Cx = CreateCx;

    fn steps() -> Steps<Self> {
        let independent = Steps::<Self>::new()
            .step("state-pending", |cx, _| pending(cx).boxed())
            .step("managed-resource-group", |cx, st| group(cx, st).boxed())
            .undo(|cx, _| async { cx.infrastructure.delete_group(&cx.target).await }.boxed())
            .step("identity-credentials", |cx, st| identities(cx, st).boxed())
            .undo(|cx, _| async { cx.infrastructure.delete_identities(&cx.target).await }.boxed())
            .step("oidc-issuer", |cx, st| issuer(cx, st).boxed())
            .undo(|cx, _| async { cx.infrastructure.delete_issuer(&cx.target).await }.boxed())
            .step("pull-secret", |cx, st| pull_secret(cx, st).boxed())
            .undo(|cx, _| async { cx.infrastructure.delete_pull_secret(&cx.target).await }.boxed())
            .step("certificates", |cx, st| certificates(cx, st).boxed())
            .undo(|cx, _| async { cx.infrastructure.delete_certificates(&cx.target).await }.boxed())
            .step("dns-records", |cx, st| records(cx, st).boxed())
            .undo(|cx, _| async { cx.infrastructure.delete_records(&cx.target).await }.boxed());
        // All of it is in the managed resource group and goes with it, but for the delegation (with the records).
        let dependent = Steps::<Self>::new()
            .step("role-assignments", |cx, st| roles(cx, st).boxed())
            .step("egress", |cx, st| egress(cx, st).boxed())
            .step("dns-zone", |cx, st| zone(cx, st).boxed())
            .step("managed-nsg", |cx, _| async { cx.infrastructure.ensure_nsg(&cx.target).await }.boxed())
            .step("federated-credentials", |cx, _| {
                async { cx.infrastructure.ensure_federation(&cx.target).await }.boxed()
            })
            .undo(|cx, _| async { cx.infrastructure.delete_federation(&cx.target).await }.boxed());
        Steps::<Self>::new()
            .step(CHECKS, |cx, _| check(cx).boxed())
            .together(independent)
            .together(dependent)
            .step("manifests", |cx, st| publish(cx, st).boxed())
            .undo(|cx, _| unpublish(cx).boxed())
    }

    fn gone(cx: &CreateCx) -> BoxFuture<'_, Result<bool, StepError>> {
        async {
            let found = cx.environment.records.clusters.find(&cluster_key(&cx.record.id)).await;
            let found = found.map_err(|error| StepError::of(&error))?;
            Ok(found.is_none_or(|found| found.value.deletion.is_some()))
        }
        .boxed()
    }

    fn deadline(cx: &CreateCx) -> Duration {
        cx.environment.step_deadline
    }
}

async fn check(cx: &CreateCx) -> Result<(), StepError> {
    let environment = &cx.environment;
    let (results, begun) = futures::join!(
        cx.infrastructure.check(&cx.target),
        checks::begin(&environment.records, &cx.record.id, environment.clock.now()),
    );
    begun.map_err(|error| StepError::of(&error))?;
    let saved = checks::save(&environment.records, &cx.record.id, &results, environment.clock.now()).await;
    saved.map_err(|error| StepError::of(&error))?;
    let mut failures: Vec<StepError> = results.into_iter().filter_map(|result| result.failure).collect();
    failures.sort_by_key(|error| error.class() != Class::Terminal);
    let Some(first) = failures.first() else { return Ok(()) };
    let text: Vec<&str> = failures.iter().map(StepError::message).collect();
    let text = text.join("; ");
    Err(match first.class() {
        Class::Terminal => StepError::terminal(text),
        Class::Wait(after) => StepError::wait(text, after),
        Class::Retry => StepError::retry(text),
    })
}

async fn pending(cx: &CreateCx) -> Result<(), StepError> {
    let key = cluster_key(&cx.record.id);
    let change = |record: &mut ClusterRecord| {
        let validating = record.state() == ClusterState::Validating && record.deletion.is_none();
        if validating {
            record.set_state(ClusterState::Pending, "");
        }
        validating
    };
    cx.environment
        .records
        .clusters
        .update(&key, change)
        .await
        .map(drop)
        .map_err(|error| StepError::of(&error))
}

async fn group(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    st.managed_resource_group = Some(cx.infrastructure.ensure_group(&cx.target).await?);
    Ok(())
}

async fn identities(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    st.identities = cx.infrastructure.ensure_identities(&cx.target).await?;
    Ok(())
}

async fn issuer(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    st.issuer_url = Some(cx.infrastructure.ensure_issuer(&cx.target).await?);
    st.signing_key_secret = Some(cx.target.keys_secret());
    Ok(())
}

async fn pull_secret(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    st.pull_secret = Some(cx.infrastructure.ensure_pull_secret(&cx.target).await?);
    Ok(())
}

async fn certificates(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    st.certificates = cx.infrastructure.ensure_certificates(&cx.target).await?;
    Ok(())
}

async fn records(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    st.ingress_address = Some(cx.infrastructure.ensure_records(&cx.target).await?);
    Ok(())
}

async fn roles(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    let made = cx.infrastructure.ensure_roles(&cx.target, &st.identities).await?;
    st.role_assignments = made;
    Ok(())
}

async fn egress(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    let egress = cx.infrastructure.ensure_egress(&cx.target).await?;
    st.load_balancer = Some(egress.load_balancer);
    st.egress_address_id = Some(egress.address_id);
    st.egress_address = Some(egress.address);
    Ok(())
}

async fn zone(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    let zone = cx.infrastructure.ensure_zone(&cx.target).await?;
    st.zone = Some(zone.id);
    st.name_servers = zone.name_servers;
    Ok(())
}

async fn publish(cx: &CreateCx, st: &mut Provisioned) -> Result<(), StepError> {
    let (environment, target) = (&cx.environment, &cx.target);
    st.cluster_uuid = Some(target.cluster_uuid());
    let secrets = cx.infrastructure.secrets(target).await?;
    let bundles = render::cluster(environment, target, &cx.route, &cx.record, st, &[], &secrets);
    let trace = trace_of(&cx.record.trace);
    let puts = bundles.iter().map(|bundle| environment.publisher.put(&cx.route, bundle, &trace));
    futures::future::try_join_all(puts).await.map_err(|error| StepError::of(&error))?;
    for bundle in &bundles {
        let detail = format!("{} to {} as {}", bundle.object, cx.route.consumer, bundle.id);
        environment.decide(&cx.record.id, "publish", Decided::Done, detail);
    }
    Ok(())
}

async fn unpublish(cx: &CreateCx) -> Result<(), StepError> {
    super::delete::withdraw(&cx.environment, &cx.route, &cx.record.id, &trace_of(&cx.record.trace), &[]).await
}
