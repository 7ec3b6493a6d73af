//! Applies the objects of works to a cluster, repairs drift, and reports their state.
//!
//! What it is: the one engine behind every work agent. It is given works ([`Work`]: manifests and how to treat them) and a
//! `kube::Client`, and reports the result to its owner through [`Reports`]. It does not know where works come from, nor
//! where reports go.
//!
//! What it is not: a store. It keeps nothing on disk; what it needs after a restart lies in the cluster, in one
//! `AppliedManifestWork` (here: the record) for each work.
//!
//! The flow of one work, always in one pass at a time (`pass`):
//! 1. the record is made before anything else, so that nothing we make is ever without an owner;
//! 2. kinds become resources (`kinds`), the manifest's settings are chosen (`choice`), and what is not yet as it
//!    should be is written (`decide`, `write`), Namespaces and definitions in their place of the list, the rest side by side;
//! 3. the record lists what was applied, and what the work no longer names is removed (`removal`);
//! 4. what is there becomes the status (`status`, `feedback`, `rules`);
//! 5. the status is reported if it is another than the last one.
//!
//! Objects are watched (`watch`), one watch for each resource. A change of an object that a work applied leads to another
//! pass within milliseconds; what we wrote ourselves does not.
//!
//! Invariants:
//! * Deleting is terminal: no status, no older or newer work of that name revives a work before it is gone.
//! * A work is reported gone only when nothing that it owned is left.
//! * An object that is not ours, or no longer the one we made, is never deleted.
//! * No report without a change; no write of what is already as it should be.
#![warn(missing_docs)]

mod choice;
mod conditions;
mod contains;
mod decide;
mod engine;
mod executor;
mod failure;
mod feedback;
mod ignore;
mod intent;
mod kinds;
mod live;
mod manifest;
mod memory;
mod metrics;
mod options;
mod owners;
mod pass;
mod records;
mod removal;
mod rules;
mod state;
mod status;
mod watch;
mod work;
mod write;

pub use engine::Engine;
pub use metrics::ApplyMetrics;
pub use options::EngineOptions;
pub use work::{Reports, Times, Work};
