//! One manifest, brought to the cluster.

use std::borrow::Cow;
use std::sync::Arc;

use aro_crds::work::v1::{ManifestWorkExecutor, UpdateStrategyType};
use serde_json::Value;
use tokio::time::Instant;

use super::Passes;
use crate::contains;
use crate::decide::{Act, Facts, Known, Written, decide};
use crate::executor;
use crate::failure::Failure;
use crate::ignore::{self, HASH_ANNOTATION, Ignored};
use crate::live::Live;
use crate::manifest::Target;
use crate::memory::Object;
use crate::owners::{Owner, references};
use crate::watch::{Sight, Watch};
use crate::write;

/// What a manifest is brought with.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) target: &'a Target,
    pub(super) manifest: &'a Value,
    pub(super) owner: &'a Owner,
    pub(super) executor: Option<&'a ManifestWorkExecutor>,
    pub(super) revision: i64,
    /// Whether a report before a restart said that this was applied.
    pub(super) trusted: bool,
    /// Whether the object is done for good and is written no more.
    pub(super) complete: bool,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) object: Object,
    pub(super) known: Known<Arc<Live>>,
    pub(super) failure: Option<Failure>,
    /// Whether something was written.
    pub(super) wrote: bool,
    /// When a repair that was put off is due.
    pub(super) later: Option<std::time::Duration>,
}

impl Passes {
    /// Brings one manifest to the cluster, if it is not there as it should be.
    pub(super) async fn bring(&self, load: Load<'_>, watch: &Watch, mut object: Object) -> Brought {
        let key = &load.target.key;
        let mut known = watch.look(key);
        let (mut wrote, mut later) = (false, None);
        let failure = match self.act(load, watch, &mut object, &mut known, &mut later).await {
            Ok(did) => {
                wrote = did;
                None
            }
            Err(failure) => {
                self.options.metrics.failed(failure.class());
                // The kind may be another by now.
                if failure.class() == "missing" {
                    self.kinds.forget(&load.target.kind.api.api_version);
                }
                let before = object.written.is_some_and(|written| written.generation == load.revision);
                if load.executor.is_some() && !before {
                    // Nothing of it is reported for an executor whose permission to read it is not known.
                    known = Known::Unknown;
                } else if matches!(known, Known::Unknown)
                    // Whether it is there is worth knowing all the same.
                    && let Ok(found) = write::read(watch, key).await
                {
                    known = found;
                }
                Some(failure)
            }
        };
        if let Known::There(live) = &known {
            live.uid().clone_into(&mut object.uid);
        }
        Brought { object, known, failure, wrote, later }
    }

    async fn act(
        &self,
        load: Load<'_>,
        watch: &Watch,
        object: &mut Object,
        known: &mut Known<Arc<Live>>,
        later: &mut Option<std::time::Duration>,
    ) -> Result<bool, Failure> {
        let (target, key) = (load.target, &load.target.key);
        let ignored = ignore::read(&target.choice.apply.ignore_fields)?;
        if watch.sight() == Sight::Blind {
            self.options.metrics.blind.inc();
            *known = write::read(watch, key).await?;
        } else if matches!(known, Known::Unknown) && !ignored.is_empty() {
            *known = write::read(watch, key).await?;
        }
        if load.complete {
            return Ok(false);
        }
        let act = choose(load, object, known, &ignored);
        let before = object.written.is_some_and(|written| written.generation == load.revision);
        if matches!(act, Act::Nothing | Act::Read) && !before && !load.trusted {
            executor::check_reading(&self.client, load.executor, target).await?;
        }
        if matches!(act, Act::Apply { repair: true }) {
            *later = object.repairs.pause(Instant::now());
            if later.is_some() {
                return Ok(false);
            }
            object.repairs.repaired(Instant::now());
            self.options.metrics.repairs.inc();
        }
        let live = match act {
            Act::Nothing => {
                remember(load, object, known, &ignored);
                return Ok(false);
            }
            Act::Read => {
                *known = write::read(watch, key).await?;
                remember(load, object, known, &ignored);
                return Ok(false);
            }
            Act::Apply { .. } => {
                let body = body(load, there(known), &ignored);
                executor::check(&self.client, load.executor, target, &body).await?;
                self.apply_one(load, watch, &body).await?
            }
            Act::Create => {
                let body = body(load, None, &ignored);
                executor::check(&self.client, load.executor, target, &body).await?;
                let live = write::create(watch, key, &body).await?;
                self.owned_right(load, watch, live).await?
            }
            Act::Own => {
                executor::check(&self.client, load.executor, target, load.manifest).await?;
                match known {
                    Known::There(live) => self.owned_right(load, watch, live.clone()).await?,
                    _ => return Ok(false),
                }
            }
        };
        self.options.metrics.applies.inc();
        *known = Known::There(live);
        remember(load, object, known, &ignored);
        Ok(true)
    }

    async fn apply_one(&self, load: Load<'_>, watch: &Watch, body: &Value) -> Result<Arc<Live>, Failure> {
        let (target, key) = (load.target, &load.target.key);
        let config = &target.choice.apply;
        let live = if target.choice.strategy == UpdateStrategyType::ServerSideApply {
            write::apply(watch, key, body, &config.field_manager, config.force).await?
        } else {
            match write::apply(watch, key, body, write::FIELD_MANAGER, true).await {
                Err(failure) if write::cannot_be_applied(&failure) => {
                    write::replace(watch, key, body).await?
                }
                applied => applied?,
            }
        };
        self.owned_right(load, watch, live).await
    }

    /// Sets or removes our reference if applying did not.
    async fn owned_right(
        &self,
        load: Load<'_>,
        watch: &Watch,
        live: Arc<Live>,
    ) -> Result<Arc<Live>, Failure> {
        if is_owned_right(load, &live) {
            return Ok(live);
        }
        write::own(watch, &load.target.key, &live, load.owner, load.target.owned).await
    }
}

fn there(known: &Known<Arc<Live>>) -> Option<&Live> {
    if let Known::There(live) = known { Some(live) } else { None }
}

fn is_owned_right(load: Load<'_>, live: &Live) -> bool {
    load.owner.owns(live) == load.target.owned
}

fn choose(load: Load<'_>, object: &Object, known: &Known<Arc<Live>>, ignored: &Ignored) -> Act {
    let facts = Facts {
        strategy: load.target.choice.strategy,
        generation: load.revision,
        written: object.written,
        trusted: load.trusted,
        owned_right: there(known).is_some_and(|live| is_owned_right(load, live)),
    };
    let live = there(known);
    let wanted = live.map_or(Cow::Borrowed(load.manifest), |live| compared(load, live, ignored));
    let value = live.map_or(&Value::Null, Live::value);
    let borrowed = match known {
        Known::Unknown => Known::Unknown,
        Known::Absent => Known::Absent,
        Known::There(live) => Known::There(&**live),
    };
    decide(facts, &borrowed, || contains::print(value, &wanted), || contains::contains(value, &wanted))
}

/// The part of the manifest that counts when it is compared.
fn compared<'a>(load: Load<'a>, live: &Live, ignored: &Ignored) -> Cow<'a, Value> {
    if ignored.is_empty() {
        Cow::Borrowed(load.manifest)
    } else {
        Cow::Owned(ignored.strip(load.manifest, live))
    }
}

/// Notes what the object looks like when it is as it should be.
fn remember(load: Load<'_>, object: &mut Object, known: &Known<Arc<Live>>, ignored: &Ignored) {
    let Some(live) = there(known) else { return };
    if live.is_deleting() {
        return;
    }
    let prints = matches!(
        load.target.choice.strategy,
        UpdateStrategyType::Update | UpdateStrategyType::ServerSideApply
    );
    let print = prints.then(|| contains::print(live.value(), &compared(load, live, ignored)));
    object.written = Some(Written { generation: load.revision, print });
}

/// What is sent.
fn body(load: Load<'_>, live: Option<&Live>, ignored: &Ignored) -> Value {
    let mut body = match live {
        Some(live) if !ignored.is_empty() => {
            let mut filled = ignored.fill(load.manifest, live);
            // What is filled in must not be older than what is there.
            filled["metadata"]["resourceVersion"] = Value::from(live.resource_version());
            filled
        }
        _ => load.manifest.clone(),
    };
    let owners = references(load.manifest, live, load.owner, load.target.owned);
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".to_owned(), Value::Array(owners));
        }
        if !load.target.kind.namespaced {
            metadata.remove("namespace");
        }
        if ignored.needs_hash() {
            let annotations = metadata.entry("annotations").or_insert_with(|| serde_json::json!({}));
            if annotations.is_object() {
                annotations[HASH_ANNOTATION] = Value::from(ignore::hash(load.manifest));
            }
        }
    }
    body
}
