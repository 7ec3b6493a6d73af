//! The catalogue of releases, cached: frontend and backend ask for it often, and it changes rarely.
//!
//! A short lifetime keeps it fresh. While Clusters Service is away, the last catalogue is served for a while; requests do
//! not wait for a peer that just failed.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::hcp::openshift_version::{Line, Release};
use aro_ocm::Version;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clusters_service::ClustersService;
use crate::error::CallError;

/// How long a catalogue is fresh.
const FRESH: Duration = Duration::from_mins(1);
/// How long one is served when there is no newer one.
const STALE: Duration = Duration::from_hours(6);
/// After a failure the peer is left alone for so long.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest time of one read.
const DEADLINE: Duration = Duration::from_secs(2);

/// A release on offer, or that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// `x.y.z`.
    pub release: Release,
    /// `stable`, `fast`, `candidate` or `nightly`.
    pub channel_group: String,
    /// Whether clusters can be created with it.
    pub enabled: bool,
}

/// All releases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue(Vec<Offered>);

impl Catalogue {
    /// A catalogue of these releases.
    pub fn new(releases: Vec<Offered>) -> Self {
        Self(releases)
    }

    /// What Clusters Service lists. Entries without a version number are left out.
    fn read(versions: Vec<Version>) -> Self {
        let read = |version: Version| {
            Some(Offered {
                release: Release::parse(version.raw_id.as_deref()?)?,
                channel_group: version.channel_group.unwrap_or_else(|| aro_ocm::STABLE.to_owned()),
                enabled: version.enabled.unwrap_or(false),
            })
        };
        Self(versions.into_iter().filter_map(read).collect())
    }

    /// The releases in the catalogue's order.
    pub fn releases(&self) -> &[Offered] {
        &self.0
    }

    /// The release that a control plane of a line gets. In `stable` that is the newest but one: a release soaks until the
    /// next one is out. Elsewhere it is the newest. A line with a single release offers that one.
    pub fn select(&self, channel_group: &str, line: Line) -> Option<Release> {
        let mut releases: Vec<&Release> = self
            .0
            .iter()
            .filter(|offered| offered.enabled && offered.channel_group == channel_group)
            .map(|offered| &offered.release)
            .filter(|release| release.line() == line)
            .collect();
        releases.sort_unstable_by(|a, b| b.cmp(a));
        let soaked = usize::from(channel_group == aro_ocm::STABLE);
        releases.get(soaked).or(releases.first()).copied().cloned()
    }

    /// Whether a release is in the catalogue.
    pub fn contains(&self, release: &Release) -> bool {
        self.0.iter().any(|offered| offered.release == *release)
    }
}

/// The catalogue as last read. Cloning shares it.
#[derive(Clone)]
pub struct Versions {
    clusters_service: ClustersService,
    state: Arc<Mutex<State>>,
    /// Held by the one reader.
    reading: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    read: Option<(Instant, Arc<Catalogue>)>,
    not_before: Option<Instant>,
}

impl State {
    fn within(&self, age: Duration) -> Option<Arc<Catalogue>> {
        let (at, catalogue) = self.read.as_ref()?;
        (at.elapsed() < age).then(|| catalogue.clone())
    }

    fn paused(&self) -> bool {
        self.not_before.is_some_and(|until| Instant::now() < until)
    }
}

impl Versions {
    /// The catalogue of this Clusters Service.
    pub fn new(clusters_service: &ClustersService) -> Self {
        Self {
            clusters_service: clusters_service.within(DEADLINE),
            state: Arc::default(),
            reading: Arc::default(),
        }
    }

    /// The catalogue; a stale one while Clusters Service does not answer.
    pub async fn get(&self) -> Result<Arc<Catalogue>, CallError> {
        let (fresh, stale, paused) = {
            let state = self.state.lock();
            (state.within(FRESH), state.within(STALE), state.paused())
        };
        if let Some(fresh) = fresh {
            return Ok(fresh);
        }
        match (stale, self.reading.try_lock()) {
            // Another request reads it, or the last read just failed.
            (Some(stale), Err(_)) => Ok(stale),
            (Some(stale), Ok(_)) if paused => Ok(stale),
            (Some(stale), Ok(guard)) => {
                let read = self.read().await;
                drop(guard);
                Ok(read.unwrap_or(stale))
            }
            (None, Ok(guard)) => {
                let read = self.read().await;
                drop(guard);
                read
            }
            (None, Err(_)) => {
                let _guard = self.reading.lock().await;
                let fresh = self.state.lock().within(FRESH);
                match fresh {
                    Some(fresh) => Ok(fresh),
                    None => self.read().await,
                }
            }
        }
    }

    async fn read(&self) -> Result<Arc<Catalogue>, CallError> {
        let read = self.clusters_service.versions().await;
        let mut state = self.state.lock();
        match read {
            Ok(versions) => {
                let catalogue = Arc::new(Catalogue::read(versions));
                *state = State { read: Some((Instant::now(), catalogue.clone())), not_before: None };
                Ok(catalogue)
            }
            Err(error) => {
                state.not_before = Some(Instant::now() + PAUSE);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests;
