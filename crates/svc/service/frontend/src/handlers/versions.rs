//! OpenShift releases on offer.

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use aro_arm_server::{Answer, Failure, paging};
use http::StatusCode;
use serde_json::{Value, json};

use crate::ports::Release;
use crate::shared::{Request, Shared};

const TYPE: &str = "Microsoft.RedHatOpenShift/locations/hcpOpenShiftVersions";

/// All of them, on one page.
pub async fn list(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let releases = releases(shared, request).await?;
    let value: Vec<Value> =
        releases.iter().map(|release| render(request, &shared.location, release)).collect();
    Ok(paging::whole(&value))
}

pub async fn get(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let releases = releases(shared, request).await?;
    let release =
        releases.iter().find(|release| release.version.eq_ignore_ascii_case(request.matched.name("version")));
    let release = release
        .ok_or_else(|| Failure::NotFound(id(request, &shared.location, request.matched.name("version"))))?;
    Ok(Answer::json(StatusCode::OK, &render(request, &shared.location, release)))
}

/// Only this region's: another region has another list, and ARM asks it there.
async fn releases(shared: &Shared, request: &Request) -> Result<Vec<Release>, Failure> {
    check_location(shared, request)?;
    shared.catalogue.releases().await.map_err(Failure::Unavailable)
}

/// A path that names another region names nothing here.
pub fn check_location(shared: &Shared, request: &Request) -> Result<(), Failure> {
    let location = request.matched.name("location");
    if location.eq_ignore_ascii_case(&shared.location) {
        return Ok(());
    }
    let subscription = request.matched.subscription();
    Err(Failure::NotFound(ResourceId::in_subscription(subscription, NAMESPACE, &[("locations", location)])))
}

fn render(request: &Request, location: &str, release: &Release) -> Value {
    aro_arm::json::sorted(json!({
        "id": id(request, location, &release.version),
        "name": release.version,
        "properties": { "channelGroup": release.channel_group, "enabled": release.enabled },
        "type": TYPE,
    }))
}

fn id(request: &Request, location: &str, version: &str) -> ResourceId {
    let pairs = [("locations", location), ("hcpOpenShiftVersions", version)];
    ResourceId::in_subscription(request.matched.subscription(), NAMESPACE, &pairs)
}
