//! Inflight checks. The pipelines run them; the API shows them.

use aro_ocm::InflightCheck;

use super::Api;
use super::call::Call;
use super::listing::{Listing, page};
use super::reply::{Failure, Reply};
use crate::records::check_key;
use crate::search::Table;

pub(super) async fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let listing = Listing::parse(call, Table::InflightChecks)?;
    let checks = &api.shared.records.checks;
    let (total, records) = page(checks, checks.in_partition(&cluster.key.partition), &listing).await?;
    let view = api.view(call);
    let items: Vec<InflightCheck> = records.iter().map(|record| view.check(record)).collect();
    listing.reply("InflightCheck", total, &items)
}

pub(super) async fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let id = call.param(1);
    let found = api.shared.records.checks.find(&check_key(&cluster.value.id, id)).await?;
    let record = found.ok_or_else(|| Failure::not_found("Inflight check", id))?;
    Reply::ok(&api.view(call).check(&record.value))
}
