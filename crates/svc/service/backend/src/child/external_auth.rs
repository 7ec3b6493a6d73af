//! External auths.

use aro_arm::error::Code;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::operation::Request;
use aro_arm::operation::ProvisioningState;
use aro_base::Timestamp;
use aro_ocm::{
    ClusterId, ExternalAuth as OcmExternalAuth, ExternalAuthId, ExternalAuthStateValue as State, Href, Root,
};
use aro_peers::translate::{Canonical, external_auth as translate};
use aro_peers::{CallError, ClustersService};
use aro_rp_store::ClaimKind;
use serde_json::Value;

use super::{Child, Named};
use crate::act::Act;
use crate::change::Draft;
use crate::key::cluster_of;
use crate::progress::{Progress, error};

impl Named for ExternalAuth {
    const NAME: &'static str = "external-auths";
}

/// The name as an id; a resource's name is always one.
fn id_of(auth: &ExternalAuth) -> Option<ExternalAuthId> {
    ExternalAuthId::parse(&translate::id_of(auth)).ok()
}

fn state(observed: &OcmExternalAuth) -> Option<State> {
    observed.status.as_ref()?.state.as_ref()?.value
}

impl Child for ExternalAuth {
    type Observed = OcmExternalAuth;

    fn href(&self, cluster: &ClusterId) -> Option<String> {
        Some(Href::ExternalAuth(cluster.clone(), id_of(self)?).under(Root::AroHcp))
    }

    fn create_body(&self, _: &Cluster, _: &Release) -> Value {
        translate::create_body(self)
    }

    fn update_body(&self, _: &Cluster) -> Value {
        translate::update_body(self)
    }

    fn canonical(value: &Value) -> Canonical {
        translate::canonical(value)
    }

    fn value(observed: &OcmExternalAuth) -> Value {
        serde_json::to_value(observed).unwrap_or_default()
    }

    fn is_updatable(observed: &OcmExternalAuth) -> bool {
        state(observed) != Some(State::Uninstalling)
    }

    fn is_uninstalling(observed: &OcmExternalAuth) -> bool {
        state(observed) == Some(State::Uninstalling)
    }

    fn judge(&self, observed: &OcmExternalAuth, request: Request) -> Progress {
        let busy = match request {
            Request::Create => ProvisioningState::Provisioning,
            _ => ProvisioningState::Updating,
        };
        match state(observed) {
            Some(State::Ready) => Progress::done(),
            Some(State::Error) => {
                let message = observed.status.as_ref().and_then(|status| status.message.clone());
                let message = message.filter(|message| !message.is_empty());
                let fallback = || "Clusters Service could not configure the external auth".to_owned();
                Progress::failed(error(Code::InternalServerError, message.unwrap_or_else(fallback)))
            }
            Some(state) => Progress::waits(busy, format!("[Clusters Service] {state}")),
            None => Progress::waits(busy, "[Clusters Service] no state"),
        }
    }

    fn mirror(_: &mut Draft<'_, Self>, _: &OcmExternalAuth, _: Timestamp) {}

    fn upgrade(&self, _: &OcmExternalAuth) -> Option<Release> {
        None
    }

    /// There is one per cluster: the claim is on the cluster.
    fn claims(&self, _: Option<&Cluster>) -> Vec<(ClaimKind, String)> {
        vec![(ClaimKind::ExternalAuth, cluster_of(&self.id).to_string())]
    }

    async fn find(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
    ) -> Result<Option<OcmExternalAuth>, CallError> {
        match id_of(self) {
            Some(id) => calls.find_external_auth(cluster, &id).await,
            None => Ok(None),
        }
    }

    async fn latest_upgrade(&self, _: &ClustersService, _: &ClusterId) -> Result<Option<String>, CallError> {
        Ok(None)
    }

    async fn perform(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
        act: &Act<Self>,
    ) -> Result<(), CallError> {
        let Some(id) = id_of(self) else { return Ok(()) };
        match act {
            Act::Create(body) => calls.create_external_auth(cluster, body).await.map(drop),
            Act::Update(body, _) => calls.update_external_auth(cluster, &id, body).await.map(drop),
            Act::Delete => calls.delete_external_auth(cluster, &id).await.map(drop),
            Act::Record(_) | Act::Upgrade(_) | Act::WakeChildren | Act::Note(_) => Ok(()),
        }
    }
}
