//! Clusters.

mod create;
mod delete;
mod parts;
mod update;

use aro_decisions::{Entry, Outcome};
use aro_ocm::{Cluster, ClusterId, ClusterState};
use aro_store::Typed;

use super::Api;
use super::call::Call;
use super::listing::Listing;
use super::present::View;
use super::reply::{Failure, Reply};
use crate::records::{ClusterRecord, cluster_key};
use crate::search::{self, Table};

pub(super) use create::create;
pub(super) use delete::delete;
pub(crate) use delete::mark_children;
pub(super) use parts::{
    autoscaler, delete_protection, hypershift, resources, set_delete_protection, status, update_autoscaler,
};
pub(super) use update::update;

impl Api {
    /// How records are shown for a call.
    pub(super) fn view(&self, call: &Call<'_>) -> View<'_> {
        View { root: call.root, environment: &self.shared.environment }
    }

    /// The cluster that the path names.
    pub(super) async fn cluster(&self, call: &Call<'_>) -> Result<Typed<ClusterRecord>, Failure> {
        let text = call.param(0);
        let absent = || Failure::not_found("Cluster", text);
        let id = ClusterId::parse(text).map_err(|_| absent())?;
        self.shared.records.clusters.find(&cluster_key(&id)).await?.ok_or_else(absent)
    }

    /// Writes a decision about a cluster into the journal.
    pub(super) fn record(
        &self,
        cluster: &ClusterRecord,
        step: &'static str,
        outcome: Outcome,
        detail: String,
    ) {
        let mut subjects: Vec<String> = cluster.arm_id().into_iter().collect();
        subjects.push(aro_ocm::Href::Cluster(cluster.id.clone()).under(aro_ocm::Root::AroHcp));
        let correlation_id = cluster.trace.correlation_id.clone();
        self.shared.decisions.record(Entry { correlation_id, subjects, step, outcome, detail });
    }
}

/// Whether a cluster is being deleted.
pub(super) fn is_leaving(cluster: &ClusterRecord) -> bool {
    cluster.deletion.is_some() || cluster.state() == ClusterState::Uninstalling
}

pub(super) async fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let listing = Listing::parse(call, Table::Clusters)?;
    let _place = api.lists.place(listing.size).await;
    let records = &api.shared.records;
    let (condition, order) = (listing.condition.clone(), listing.order.clone());
    let found = search::run(records, condition, order, listing.skip(), listing.size).await?;
    let view = api.view(call);
    let mut items: Vec<Cluster> = Vec::with_capacity(found.documents.len());
    for document in found.documents {
        // One record that cannot be read is counted and logged; it must not hide the others.
        if let Ok(record) = records.clusters.decode(document) {
            items.push(view.cluster(&record.value));
        }
    }
    listing.reply("Cluster", found.total, &items)
}

pub(super) async fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.cluster(call).await?;
    Ok(Reply::ok(&api.view(call).cluster(&record.value))?.with_etag(&record.etag))
}
