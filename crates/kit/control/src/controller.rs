//! Observe, plan, apply: a shape for reconcilers whose decisions can be read, paused and tested without a server.

use std::fmt::{Debug, Display};
use std::sync::Arc;

use aro_base::{Class, Classify, SharedClock, Timestamp};

use crate::gate::{Gate, Permit, Reason};
use crate::{Key, Outcome, Plan, Preview, Reconcile};

#[cfg(test)]
mod tests;

/// A reconciler in three parts. [`Planned`] makes a [`Reconcile`] of it.
pub trait Controller: Send + Sync + 'static {
    /// Names one object.
    type Key: Key;
    /// Everything that a decision needs.
    type Seen: Send + Sync;
    /// One step that can be repeated: doing it twice equals doing it once.
    type Act: Display + Debug + Send + Sync;
    /// Why observing or applying fails.
    type Error: Classify + std::error::Error + Send + Sync + 'static;
    /// The controller's name in logs and metrics.
    const NAME: &'static str;

    /// Reads everything a decision needs, and writes nothing.
    fn observe(&self, key: &Self::Key) -> impl Future<Output = Result<Self::Seen, Self::Error>> + Send;

    /// Decides. Pure: same input, same plan.
    fn plan(&self, seen: &Self::Seen, now: Timestamp) -> Plan<Self::Act>;

    /// Performs one act. Writes to the store present the permit's token.
    fn apply(
        &self,
        key: &Self::Key,
        act: &Self::Act,
        permit: Permit,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// See [`Reconcile::on_terminal`].
    fn on_terminal(
        &self,
        _key: &Self::Key,
        _error: &Self::Error,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A controller as a reconciler: it applies what the gate permits and previews the rest.
pub struct Planned<C: Controller> {
    controller: Arc<C>,
    gate: Gate<C::Key>,
    clock: SharedClock,
}

impl<C: Controller> Planned<C> {
    /// A controller behind a gate. Its [`crate::Runner`] needs the same gate.
    pub fn new(controller: Arc<C>, gate: &Gate<C::Key>, clock: SharedClock) -> Self {
        Self { controller, gate: gate.clone(), clock }
    }

    /// What a pass over this key would do now.
    pub async fn explain(&self, key: &C::Key) -> Result<Plan<C::Act>, C::Error> {
        let seen = self.controller.observe(key).await?;
        Ok(self.controller.plan(&seen, self.clock.now()))
    }
}

/// Why a planned pass ended early.
#[derive(Debug, thiserror::Error)]
pub enum PlannedError<E: std::error::Error + 'static> {
    /// Observing or applying failed.
    #[error(transparent)]
    Controller(E),
    /// The gate closed between two acts; the next pass is a preview.
    #[error("apply skipped: {0:?}")]
    Withheld(Reason),
}

impl<E: Classify + std::error::Error + 'static> Classify for PlannedError<E> {
    fn class(&self) -> Class {
        match self {
            Self::Controller(error) => error.class(),
            Self::Withheld(_) => Class::Wait(std::time::Duration::ZERO),
        }
    }
}

impl<C: Controller> Reconcile for Planned<C> {
    type Key = C::Key;
    type Error = PlannedError<C::Error>;
    const NAME: &'static str = C::NAME;

    async fn reconcile(&self, key: &C::Key) -> Result<Outcome, Self::Error> {
        let plan = self.explain(key).await.map_err(PlannedError::Controller)?;
        for act in &plan.acts {
            let permit = self.gate.permit(key).map_err(PlannedError::Withheld)?;
            tracing::debug!(controller = C::NAME, ?key, %act, "apply");
            self.controller.apply(key, act, permit).await.map_err(PlannedError::Controller)?;
        }
        Ok(plan.outcome)
    }

    async fn preview(&self, key: &C::Key) -> Result<Preview, Self::Error> {
        let plan = self.explain(key).await.map_err(PlannedError::Controller)?;
        if plan.acts.is_empty() && plan.outcome == Outcome::Settled {
            return Ok(Preview::Settled);
        }
        let plan = plan.to_string();
        tracing::debug!(controller = C::NAME, ?key, plan, "plan not applied");
        Ok(Preview::Pending { plan: Some(plan) })
    }

    async fn on_terminal(&self, key: &C::Key, error: &Self::Error) -> Result<(), Self::Error> {
        match error {
            PlannedError::Controller(error) => {
                self.controller.on_terminal(key, error).await.map_err(PlannedError::Controller)
            }
            PlannedError::Withheld(_) => Ok(()),
        }
    }
}
