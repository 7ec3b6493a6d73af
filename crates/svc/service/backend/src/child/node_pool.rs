//! Node pools.

use aro_arm::error::Code;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::operation::Request;
use aro_arm::hcp::resource::{ActiveVersion, Condition, ConditionStatus};
use aro_arm::hcp::service_provider::{ObservedVersion, RolloutState};
use aro_arm::operation::ProvisioningState;
use aro_base::Timestamp;
use aro_ocm::{
    ClusterId, Href, NodePool as OcmNodePool, NodePoolId, NodePoolStateValue as State, Root, VERSION_PREFIX,
};
use aro_peers::translate::{Canonical, node_pool as translate};
use aro_peers::{CallError, ClustersService};
use aro_rp_store::ClaimKind;
use serde_json::Value;

use super::{Child, Named};
use crate::act::Act;
use crate::change::Draft;
use crate::progress::{Progress, error};

impl Named for NodePool {
    const NAME: &'static str = "node-pools";
}

/// The name as an id; a resource's name is always one.
fn id_of(pool: &NodePool) -> Option<NodePoolId> {
    NodePoolId::parse(&translate::id_of(pool)).ok()
}

fn state(observed: &OcmNodePool) -> Option<State> {
    observed.status.as_ref()?.state.as_ref()?.value
}

/// The release that the pool has, by its version or by the id of that.
fn running(observed: &OcmNodePool) -> Option<Release> {
    let version = observed.version.as_ref()?;
    let text = version.raw_id.as_deref().or(version.id.as_deref())?;
    let text = text.strip_prefix(VERSION_PREFIX).unwrap_or(text);
    let group = version.channel_group.as_deref().unwrap_or_default();
    let text = text.strip_suffix(&format!("-{group}")).unwrap_or(text);
    Release::parse(text)
}

impl Child for NodePool {
    type Observed = OcmNodePool;

    fn href(&self, cluster: &ClusterId) -> Option<String> {
        Some(Href::NodePool(cluster.clone(), id_of(self)?).under(Root::AroHcp))
    }

    fn create_body(&self, cluster: &Cluster, release: &Release) -> Value {
        translate::create_body(self, cluster, release)
    }

    fn update_body(&self, cluster: &Cluster) -> Value {
        translate::update_body(self, cluster)
    }

    fn canonical(value: &Value) -> Canonical {
        translate::canonical(value)
    }

    fn value(observed: &OcmNodePool) -> Value {
        serde_json::to_value(observed).unwrap_or_default()
    }

    fn is_updatable(observed: &OcmNodePool) -> bool {
        state(observed).is_some_and(State::is_updatable)
    }

    fn is_uninstalling(observed: &OcmNodePool) -> bool {
        state(observed) == Some(State::Uninstalling)
    }

    fn judge(&self, observed: &OcmNodePool, request: Request) -> Progress {
        let busy = match request {
            Request::Create => ProvisioningState::Provisioning,
            _ => ProvisioningState::Updating,
        };
        let message = observed.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
        let waits = |state: &str| {
            let more = if message.is_empty() { String::new() } else { format!(": {message}") };
            Progress::waits(busy, format!("[Clusters Service] {state}{more}"))
        };
        match state(observed) {
            Some(State::Ready) => match self.upgrade(observed) {
                Some(release) => waits(&format!("release {release} does not run yet")),
                None => Progress::done(),
            },
            Some(State::Error) => {
                let message = match message.is_empty() {
                    true => "Clusters Service could not provision the node pool".to_owned(),
                    false => message,
                };
                Progress::failed(error(Code::InternalServerError, message))
            }
            // Clusters Service keeps trying.
            Some(state) => waits(state.as_str()),
            None => waits("no state"),
        }
    }

    fn mirror(draft: &mut Draft<'_, Self>, observed: &OcmNodePool, now: Timestamp) {
        draft.beside.spec.node_pool_version.desired_version = draft
            .value
            .properties
            .version
            .id
            .as_deref()
            .and_then(Release::parse)
            .or_else(|| running(observed));
        if let (Some(State::Ready | State::Updating), Some(release)) = (state(observed), running(observed)) {
            draft.value.status.active_versions = vec![ActiveVersion { version: release.to_string() }];
            draft.beside.status.node_pool_version.active_versions =
                vec![ObservedVersion { version: release, state: Some(RolloutState::Completed) }];
        }
        let checked = matches!(state(observed), Some(State::Installing | State::Ready | State::Updating));
        let conditions = &mut draft.value.status.conditions;
        if checked && !conditions.iter().any(|condition| condition.kind == REQUIREMENTS) {
            conditions.push(Condition {
                last_transition_time: now,
                message: String::new(),
                reason: "Valid".to_owned(),
                status: ConditionStatus::True,
                kind: REQUIREMENTS.to_owned(),
            });
        }
    }

    fn upgrade(&self, observed: &OcmNodePool) -> Option<Release> {
        let wanted = Release::parse(self.properties.version.id.as_deref()?)?;
        let running = running(observed)?;
        (wanted != running).then_some(wanted)
    }

    fn claims(&self, cluster: Option<&Cluster>) -> Vec<(ClaimKind, String)> {
        let of_cluster = cluster.and_then(|cluster| cluster.properties.platform.subnet_id.as_ref());
        let own = self.properties.platform.subnet_id.as_ref().filter(|own| Some(*own) != of_cluster);
        own.map(|own| (ClaimKind::Subnet, own.to_string())).into_iter().collect()
    }

    async fn find(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
    ) -> Result<Option<OcmNodePool>, CallError> {
        match id_of(self) {
            Some(id) => calls.find_node_pool(cluster, &id).await,
            None => Ok(None),
        }
    }

    async fn latest_upgrade(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
    ) -> Result<Option<String>, CallError> {
        let Some(id) = id_of(self) else { return Ok(None) };
        Ok(calls.latest_node_pool_upgrade(cluster, &id).await?.and_then(|policy| policy.version))
    }

    async fn perform(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
        act: &Act<Self>,
    ) -> Result<(), CallError> {
        let Some(id) = id_of(self) else { return Ok(()) };
        match act {
            Act::Create(body) => calls.create_node_pool(cluster, body).await.map(drop),
            Act::Update(body, _) => calls.update_node_pool(cluster, &id, body).await.map(drop),
            Act::Delete => calls.delete_node_pool(cluster, &id).await.map(drop),
            Act::Upgrade(version) => calls.upgrade_node_pool(cluster, &id, version).await.map(drop),
            Act::Record(_) | Act::WakeChildren | Act::Note(_) => Ok(()),
        }
    }
}

/// The one condition that callers see.
const REQUIREMENTS: &str = "RequirementsValid";
