//! Resync lists: what one side has, so that the other sends what is missing.
//!
//! A list can be longer than a packet. An id that a spec list does not name counts as missing: its spec is sent again, or
//! the agent's copy is an orphan. So each page names the id range it covers ([`IdRange`], in extensions of ours). A server
//! without these extensions sends more than needed. Status lists may be split anywhere, as the original does; ours name
//! their ranges, so that an agent finds the ids for which the server has no bundle.

use serde::{Deserialize, Serialize};

use crate::payload::or_default;
use crate::{Attribute, Event};

/// The versions an agent has. The response is every newer spec, and deletions of what has no bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecResync {
    /// All of them; empty if the agent has none.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_versions: Vec<KnownVersion>,
}

/// One bundle an agent has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownVersion {
    /// The bundle.
    #[serde(rename = "resourceID")]
    pub id: String,
    /// Its version.
    #[serde(rename = "resourceVersion", default)]
    pub version: i64,
}

/// The statuses the sender has. The response is those that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResync {
    /// All of them; empty to request every status.
    #[serde(default, deserialize_with = "or_default")]
    pub status_hashes: Vec<KnownStatus>,
}

/// One status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownStatus {
    /// The bundle.
    #[serde(rename = "resourceID")]
    pub id: String,
    /// The agent's digest of it.
    #[serde(rename = "statusHash", default)]
    pub hash: String,
}

/// A range of ids in byte order, from `from` (included) to `to` (excluded). A missing end is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdRange {
    /// The first id in the range.
    pub from: Option<String>,
    /// The first id after the range.
    pub to: Option<String>,
}

const FROM: &str = "resyncfrom";
const TO: &str = "resyncto";

impl IdRange {
    /// Whether the range covers an id.
    pub fn contains(&self, id: &str) -> bool {
        self.from.as_deref().is_none_or(|from| id >= from) && self.to.as_deref().is_none_or(|to| id < to)
    }

    /// Sets the range on an event.
    pub fn attach(&self, event: &mut Event) {
        for (name, id) in [(FROM, &self.from), (TO, &self.to)] {
            if let Some(id) = id {
                event.others.insert(name.to_owned(), Attribute::Text(id.clone()));
            }
        }
    }

    /// The range of a status list; `None` if the list names none.
    pub fn of_status_list(event: &Event) -> Option<Self> {
        let range = Self::of(event);
        range.from.is_some().then_some(range)
    }

    /// The range of a spec list; a list without one covers all ids.
    pub fn of(event: &Event) -> Self {
        Self { from: event.other(FROM).map(str::to_owned), to: event.other(TO).map(str::to_owned) }
    }
}

/// Bytes around the id of one entry on the wire.
const ENTRY: usize = 64;
/// Entries per page, as in the original.
const MOST: usize = 1000;

/// Splits a spec list into pages of at max_entries `limit` bytes. There is at least one page; a single page has an open range.
pub fn spec_pages(mut known: Vec<KnownVersion>, limit: usize) -> Vec<(IdRange, SpecResync)> {
    known.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let pages = split(known, |entry| entry.id.len(), usize::MAX, limit);
    let firsts: Vec<Option<String>> =
        pages.iter().map(|page| page.first().map(|entry| entry.id.clone())).collect();
    if pages.is_empty() {
        return vec![(IdRange::default(), SpecResync::default())];
    }
    let pages = pages.into_iter().enumerate();
    pages
        .map(|(index, resource_versions)| {
            let from = if index == 0 { None } else { firsts[index].clone() };
            let to = firsts.get(index + 1).cloned().flatten();
            (IdRange { from, to }, SpecResync { resource_versions })
        })
        .collect()
}

/// Below every id.
const LOWEST: &str = "!";

/// Splits a status list into pages of at max_entries `limit` bytes. There is at least one page; an empty page requests every
/// status, which is what a server without bundles needs.
pub fn status_pages(mut known: Vec<KnownStatus>, limit: usize) -> Vec<(IdRange, StatusResync)> {
    known.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let mut pages = split(known, |entry| entry.id.len() + entry.hash.len(), MOST, limit);
    if pages.is_empty() {
        pages.push(Vec::new());
    }
    let firsts: Vec<Option<String>> =
        pages.iter().map(|page| page.first().map(|entry| entry.id.clone())).collect();
    let pages = pages.into_iter().enumerate();
    pages
        .map(|(index, status_hashes)| {
            let from = if index == 0 { Some(LOWEST.to_owned()) } else { firsts[index].clone() };
            let to = firsts.get(index + 1).cloned().flatten();
            (IdRange { from, to }, StatusResync { status_hashes })
        })
        .collect()
}

fn split<T>(entries: Vec<T>, size: impl Fn(&T) -> usize, max_entries: usize, limit: usize) -> Vec<Vec<T>> {
    let mut pages: Vec<Vec<T>> = Vec::new();
    let mut room = 0;
    for entry in entries {
        let size = size(&entry) + ENTRY;
        match pages.last_mut() {
            Some(page) if size <= room && page.len() < max_entries => {
                room -= size;
                page.push(entry);
            }
            _ => {
                room = limit.saturating_sub(size);
                pages.push(vec![entry]);
            }
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(count: usize) -> Vec<KnownVersion> {
        (0..count).map(|n| KnownVersion { id: format!("{:036}", (n * 7919) % count), version: 1 }).collect()
    }

    #[test]
    fn list_that_fits_one_packet_is_one_page_without_extensions() {
        assert_eq!(spec_pages(known(0), 1000), [(IdRange::default(), SpecResync::default())]);
        let pages = spec_pages(known(100), 512 * 1024);
        assert_eq!((pages.len(), &pages[0].0), (1, &IdRange::default()));
    }

    #[test]
    fn pages_of_a_long_list_fit_and_cover_every_id_once() {
        let pages = spec_pages(known(6000), 400 * 1024);
        assert!(pages.len() > 1);
        for (_, page) in &pages {
            assert!(serde_json::to_vec(page).unwrap().len() <= 400 * 1024);
        }
        let listed: usize = pages.iter().map(|(_, page)| page.resource_versions.len()).sum();
        assert_eq!(listed, 6000);
        let ids = ["", "0", "zzz"]
            .map(str::to_owned)
            .into_iter()
            .chain(known(6000).into_iter().map(|known| known.id));
        for id in ids {
            let speaking: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].0.contains(&id)).collect();
            assert_eq!(speaking.len(), 1, "{id}");
            let page = &pages[speaking[0]].1;
            let listed = page.resource_versions.iter().any(|known| known.id == id);
            assert_eq!(listed, id.len() == 36, "{id}");
        }
    }

    #[test]
    fn status_pages_always_name_their_range() {
        let nothing = status_pages(Vec::new(), 1000);
        assert_eq!((nothing.len(), nothing[0].1.status_hashes.len()), (1, 0));
        let known = |n: usize| KnownStatus { id: format!("{:036}", (n * 7919) % 2500), hash: "y".into() };
        let pages = status_pages((0..2500).map(known).collect(), 512 * 1024);
        assert_eq!(pages.len(), 3);
        for id in ["!", "0", "zzz"].map(str::to_owned).into_iter().chain((0..2500).map(|n| known(n).id)) {
            let speaking: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].0.contains(&id)).collect();
            assert_eq!(speaking.len(), 1, "{id}");
            let listed = pages[speaking[0]].1.status_hashes.iter().any(|known| known.id == id);
            assert_eq!(listed, id.len() == 36, "{id}");
        }
        let mut event = Event::new("e", "s", crate::EventType::status(crate::Action::ResyncRequest), "c");
        assert_eq!(IdRange::of_status_list(&event), None, "the original's lists may be split anywhere");
        nothing[0].0.attach(&mut event);
        assert_eq!(IdRange::of_status_list(&event).as_ref(), Some(&nothing[0].0));
    }
}
