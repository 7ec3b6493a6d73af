//! Resyncs: what one side knows, so that the other sends what it does not.
//!
//! A list can be longer than a packet. What a list of specs does not name counts as unknown: it is sent again, or taken for a
//! ghost. So each page of one says which range of ids it speaks for ([`IdRange`], in extensions of ours). Servers that do
//! not know these extensions send more than needed; that is all. Lists of statuses may be cut anywhere, and the original
//! does so without a word; of ours, which name their ranges, an agent learns besides what the server does not know at all.

use serde::{Deserialize, Serialize};

use crate::payload::or_default;
use crate::{Attribute, Event};

/// What an agent has: the answer is everything newer, and deletions of what should not be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecResync {
    /// Everything it has; nothing listed: it has nothing.
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

/// What somebody knows of statuses: the answer is what differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResync {
    /// What is known; nothing listed: send everything.
    #[serde(default, deserialize_with = "or_default")]
    pub status_hashes: Vec<KnownStatus>,
}

/// One known status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownStatus {
    /// The bundle.
    #[serde(rename = "resourceID")]
    pub id: String,
    /// The agent's digest of the status that is known.
    #[serde(rename = "statusHash", default)]
    pub hash: String,
}

/// A range of ids, in the order of bytes: from the first (included) to the second (excluded); open where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdRange {
    /// The first id in it.
    pub from: Option<String>,
    /// The first id behind it.
    pub to: Option<String>,
}

const FROM: &str = "resyncfrom";
const TO: &str = "resyncto";

impl IdRange {
    /// Whether an id is in it.
    pub fn contains(&self, id: &str) -> bool {
        self.from.as_deref().is_none_or(|from| id >= from) && self.to.as_deref().is_none_or(|to| id < to)
    }

    /// Puts it on an event.
    pub fn attach(&self, event: &mut Event) {
        for (name, id) in [(FROM, &self.from), (TO, &self.to)] {
            if let Some(id) = id {
                event.others.insert(name.to_owned(), Attribute::Text(id.clone()));
            }
        }
    }

    /// Reads it off a list of statuses: nothing if the list does not say what it speaks for.
    pub fn of_statuses(event: &Event) -> Option<Self> {
        let range = Self::of(event);
        range.from.is_some().then_some(range)
    }

    /// Reads it off an event; a list of specs without one speaks for everything.
    pub fn of(event: &Event) -> Self {
        Self { from: event.other(FROM).map(str::to_owned), to: event.other(TO).map(str::to_owned) }
    }
}

/// What surrounds the ids of one entry on the wire.
const ENTRY: usize = 64;
/// Entries of one page at most, as the original does.
const MOST: usize = 1000;

/// Cuts a list of specs into pages of at most so many bytes. There is always one, and a single one has no range.
pub fn spec_pages(mut known: Vec<KnownVersion>, limit: usize) -> Vec<(IdRange, SpecResync)> {
    known.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let pages = cut(known, |entry| entry.id.len(), usize::MAX, limit);
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

/// Cuts a list of statuses into pages of at most so many bytes. There is always one: an empty one asks for everything, which
/// is right for somebody who knows nothing.
pub fn status_pages(mut known: Vec<KnownStatus>, limit: usize) -> Vec<(IdRange, StatusResync)> {
    known.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let mut pages = cut(known, |entry| entry.id.len() + entry.hash.len(), MOST, limit);
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

fn cut<T>(entries: Vec<T>, size: impl Fn(&T) -> usize, most: usize, limit: usize) -> Vec<Vec<T>> {
    let mut pages: Vec<Vec<T>> = Vec::new();
    let mut room = 0;
    for entry in entries {
        let size = size(&entry) + ENTRY;
        match pages.last_mut() {
            Some(page) if size <= room && page.len() < most => {
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
    fn what_fits_into_one_packet_is_one_list_that_everybody_understands() {
        assert_eq!(spec_pages(known(0), 1000), [(IdRange::default(), SpecResync::default())]);
        let pages = spec_pages(known(100), 512 * 1024);
        assert_eq!((pages.len(), &pages[0].0), (1, &IdRange::default()));
    }

    #[test]
    fn pages_of_a_long_list_fit_and_speak_for_every_id_exactly_once() {
        let pages = spec_pages(known(6000), 400 * 1024);
        assert!(pages.len() > 1);
        for (_, page) in &pages {
            assert!(serde_json::to_vec(page).unwrap().len() <= 400 * 1024);
        }
        let listed: usize = pages.iter().map(|(_, page)| page.resource_versions.len()).sum();
        assert_eq!(listed, 6000);
        let ids =
            ["", "0", "zzz"].map(str::to_owned).into_iter().chain(known(6000).into_iter().map(|one| one.id));
        for id in ids {
            let speaking: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].0.contains(&id)).collect();
            assert_eq!(speaking.len(), 1, "{id}");
            let page = &pages[speaking[0]].1;
            let listed = page.resource_versions.iter().any(|one| one.id == id);
            assert_eq!(listed, id.len() == 36, "{id}");
        }
    }

    #[test]
    fn lists_of_statuses_always_say_what_they_speak_for() {
        let nothing = status_pages(Vec::new(), 1000);
        assert_eq!((nothing.len(), nothing[0].1.status_hashes.len()), (1, 0));
        let known = |n: usize| KnownStatus { id: format!("{:036}", (n * 7919) % 2500), hash: "y".into() };
        let pages = status_pages((0..2500).map(known).collect(), 512 * 1024);
        assert_eq!(pages.len(), 3);
        for id in ["!", "0", "zzz"].map(str::to_owned).into_iter().chain((0..2500).map(|n| known(n).id)) {
            let speaking: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].0.contains(&id)).collect();
            assert_eq!(speaking.len(), 1, "{id}");
            let listed = pages[speaking[0]].1.status_hashes.iter().any(|one| one.id == id);
            assert_eq!(listed, id.len() == 36, "{id}");
        }
        let mut event = Event::new("e", "s", crate::EventType::status(crate::Action::ResyncRequest), "c");
        assert_eq!(IdRange::of_statuses(&event), None, "the original's lists may be cut anywhere");
        nothing[0].0.attach(&mut event);
        assert_eq!(IdRange::of_statuses(&event).as_ref(), Some(&nothing[0].0));
    }
}
