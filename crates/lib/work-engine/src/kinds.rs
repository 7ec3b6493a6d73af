//! From kinds, as manifests name them, to resources, as the server serves them.
//!
//! What the server said is kept. What it did not know is asked again each time: a definition may have come meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Client;
use kube::core::ApiResource;
use parking_lot::RwLock;

use crate::failure::Failure;

/// A resource that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) api: ApiResource,
    pub(crate) namespaced: bool,
}

#[derive(Debug, Clone, Copy)]
enum By<'a> {
    Kind(&'a str),
    Resource(&'a str),
}

impl By<'_> {
    fn fits(self, kind: &Kind) -> bool {
        match self {
            Self::Kind(name) => kind.api.kind == name,
            Self::Resource(plural) => kind.api.plural == plural,
        }
    }
}

/// The discovered kinds of the server, as far as works needed them.
pub(crate) struct Kinds {
    client: Client,
    /// By `group/version`, or `version` for the core group.
    known: RwLock<HashMap<String, Vec<Arc<Kind>>>>,
}

impl Kinds {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, known: RwLock::default() }
    }

    /// The resource of a kind.
    pub(crate) async fn of_kind(&self, api_version: &str, kind: &str) -> Result<Arc<Kind>, Failure> {
        let found = self.find(api_version, By::Kind(kind)).await?;
        found.ok_or_else(|| Failure::UnknownKind(format!("{api_version}, Kind={kind}")))
    }

    /// A resource by its plural name. `None`: it is not served, so that nothing of it can be left.
    pub(crate) async fn of_resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<Option<Arc<Kind>>, Failure> {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        self.find(&api_version, By::Resource(plural)).await
    }

    /// Forgets what is known of a group and version: the server said something else.
    pub(crate) fn forget(&self, api_version: &str) {
        self.known.write().remove(api_version);
    }

    async fn find(&self, api_version: &str, by: By<'_>) -> Result<Option<Arc<Kind>>, Failure> {
        if let Some(kinds) = self.known.read().get(api_version)
            && let Some(kind) = kinds.iter().find(|kind| by.fits(kind))
        {
            return Ok(Some(kind.clone()));
        }
        let kinds = self.ask(api_version).await?;
        let found = kinds.iter().find(|kind| by.fits(kind)).cloned();
        self.known.write().insert(api_version.to_owned(), kinds);
        Ok(found)
    }

    async fn ask(&self, api_version: &str) -> Result<Vec<Arc<Kind>>, Failure> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
        if version.is_empty() || !plain(group) || !plain(version) {
            return Ok(Vec::new());
        }
        let listed = if group.is_empty() {
            self.client.list_core_api_resources(version).await
        } else {
            self.client.list_api_group_resources(api_version).await
        };
        let listed = match listed {
            Ok(listed) => listed.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(Failure::Api(error)),
        };
        let served = listed.into_iter().filter(|resource| !resource.name.contains('/'));
        Ok(served
            .map(|resource| {
                let api = ApiResource {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    api_version: api_version.to_owned(),
                    kind: resource.kind,
                    plural: resource.name,
                };
                Arc::new(Kind { api, namespaced: resource.namespaced })
            })
            .collect())
    }
}
