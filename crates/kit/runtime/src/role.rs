//! The surface every role shows, so that composing them is mechanical.

use crate::config::{Checked, Section};
use crate::{Fault, Scope, TaskKind};

/// Why a role could not be built.
pub type BuildError = Fault;

/// Why a running role ended other than by being asked to.
pub type RunError = Fault;

/// One thing that can be deployed alone, and part of the all-in-one process.
///
/// The composition (`aro-app`) binds the listeners and opens the stores first and passes them as [`Role::Ports`]; a role
/// opens nothing by itself, so that a port in use is reported before any work starts.
pub trait Role: Sized + Send + 'static {
    /// The role's name: its subcommand, its configuration table, its scope.
    const NAME: &'static str;
    /// Its configuration table.
    type Config: Section;
    /// What it needs from outside, by trait.
    type Ports;

    /// Puts the role together. Does no I/O and starts nothing.
    fn build(cfg: Checked<Self::Config>, ports: Self::Ports) -> Result<Self, BuildError>;

    /// Runs until the scope is cancelled, which happens after the scope's listeners, requests, reconcilers and
    /// sagas have stopped (see [`crate::Phase`]). Returning early without an error is a failure, too.
    fn run(self, scope: Scope) -> impl Future<Output = Result<(), RunError>> + Send;
}

/// Builds a role and runs it in its own scope. A role that returns before its scope is cancelled has failed: a role that
/// is gone must not look healthy.
pub fn launch<R: Role>(scope: &Scope, config: Checked<R::Config>, ports: R::Ports) -> Result<(), BuildError> {
    let role = R::build(config, ports)?;
    let inside = scope.clone();
    scope.spawn(TaskKind::Role, "run", async move {
        role.run(inside.clone()).await?;
        if inside.is_cancelled() { Ok(()) } else { Err(Fault::new("the role ended by itself")) }
    });
    Ok(())
}
