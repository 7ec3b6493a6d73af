//! The roles there are, and how one is started.

use aro_runtime::{BuildError, Checked, Fault, Role, Scope, TaskKind};

/// A role by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleName {
    /// Embedded Kubernetes.
    Kube,
    /// The ARM front end.
    Frontend,
    /// The embedded broker.
    Broker,
    /// The Maestro server.
    MaestroServer,
    /// Maestro's agent.
    MaestroAgent,
    /// The multicluster engine.
    Mce,
}

/// Builds a role and runs it in a scope of its own.
pub(crate) fn launch<R: Role>(
    root: &Scope,
    config: Checked<R::Config>,
    ports: R::Ports,
) -> Result<Scope, BuildError> {
    let scope = root.role(R::NAME);
    launch_in::<R>(&scope, config, ports)?;
    Ok(scope)
}

/// Builds a role and runs it in a scope that is its own already.
pub(crate) fn launch_in<R: Role>(
    scope: &Scope,
    config: Checked<R::Config>,
    ports: R::Ports,
) -> Result<(), BuildError> {
    let role = R::build(config, ports)?;
    let inside = scope.clone();
    scope.spawn(TaskKind::Role, "run", async move {
        role.run(inside.clone()).await?;
        // Nobody asked it to stop: a role that is gone must not look like one that is well.
        if inside.is_cancelled() { Ok(()) } else { Err(Fault::new("the role ended by itself")) }
    });
    Ok(())
}
