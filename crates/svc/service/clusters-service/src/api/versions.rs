//! Versions, and what the API says about itself.

use aro_ocm::{ApiMetadata, List, Root};
use aro_store::{Container, DocId, DocKey, Document, PartitionKey, Raw};
use serde_json::{Map, Value, json};

use super::Api;
use super::call::Call;
use super::listing::Listing;
use super::reply::{Failure, Reply};
use crate::search::{Table, select};

/// The root of an API. Liveness probes ask for it.
pub(super) fn metadata(call: &Call<'_>) -> Result<Reply, Failure> {
    let path = call.root.path();
    Reply::ok(&ApiMetadata {
        kind: Some("APIVersion".to_owned()),
        id: path.rsplit('/').next().map(str::to_owned),
        href: Some(path.to_owned()),
        server_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    })
}

/// The versions of the generic API.
pub(super) fn apis() -> Reply {
    let path = Root::ClustersMgmt.path();
    let version = json!({"kind": "APIVersion", "id": "v1", "href": path});
    let body =
        json!({"kind": "API", "id": "clusters_mgmt", "href": "/api/clusters_mgmt", "versions": [version]});
    Reply::text(body.to_string())
}

pub(super) fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let listing = Listing::parse(call, Table::Versions)?;
    let catalogue = api.shared.versions.catalogue();
    let mut documents = Vec::with_capacity(catalogue.releases().len());
    for release in catalogue.releases() {
        let shown = catalogue.shown(release, call.root);
        let body = Raw::of(&shown).map_err(|error| Failure::caused("a version cannot be shown", error))?;
        documents.push(document(&release.id(), body));
    }
    let found = select(documents, listing.condition.as_ref(), &listing.order, listing.skip(), listing.size);
    let mut items: Vec<Map<String, Value>> = Vec::with_capacity(found.documents.len());
    for document in found.documents {
        let object =
            document.body.to().map_err(|error| Failure::caused("a version cannot be shown", error))?;
        items.push(listing.pruned(object));
    }
    Reply::ok(&List::new("Version", listing.page, found.total, items))
}

/// Versions are not stored; a search sees them as documents all the same.
fn document(id: &str, body: Raw) -> Document {
    Document {
        key: DocKey {
            container: Container::new("Versions"),
            partition: PartitionKey::new("-"),
            id: DocId::new(id),
        },
        resource_type: String::new(),
        resource_id: String::new(),
        etag: aro_base::ETag::new(""),
        version: 0,
        modified: aro_base::Timestamp::UNIX_EPOCH,
        expires: None,
        body,
    }
}

pub(super) fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let catalogue = api.shared.versions.catalogue();
    let id = call.param(0);
    let release = catalogue.find(id).ok_or_else(|| Failure::not_found("Version", id))?;
    Reply::ok(&catalogue.shown(release, call.root))
}
