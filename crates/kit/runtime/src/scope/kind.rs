//! When a scope stops, and what the end of a task means.

/// The order in which a stack stops. Each phase ends before the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Stop accepting.
    Listeners,
    /// Requests in flight drain.
    Requests,
    /// Reconcilers finish the act they are in.
    Reconcilers,
    /// Sagas park at a step boundary.
    Sagas,
    /// Roles' own `run` returns.
    Roles,
    /// Connections to other systems close.
    Transports,
    /// The store closes last: everyone above may still write.
    Store,
}

impl Phase {
    /// Every phase, in stopping order.
    pub const ALL: [Self; 7] = [
        Self::Listeners,
        Self::Requests,
        Self::Reconcilers,
        Self::Sagas,
        Self::Roles,
        Self::Transports,
        Self::Store,
    ];
}

/// What happens to a task when its scope is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCancel {
    /// It watches the scope and ends by itself; the scope waits for it.
    Drain,
    /// It is dropped at its next `.await`.
    Abort,
}

/// What an error (or a panic) of a task brings down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Nothing: it is logged.
    Log,
    /// The role the task belongs to.
    StopRole,
    /// The whole stack.
    StopProcess,
}

/// The sorts of tasks there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// A role's `run`. Drains; an error stops the role.
    Role,
    /// An accept loop. Drains (stops accepting by itself); an error stops the role.
    Listener,
    /// One connection or one request. Drains; an error is that caller's problem and is logged.
    Connection,
    /// A long-lived loop the role cannot do without. Drains at a safe point; an error stops the role.
    Worker,
    /// One piece of work that must not be cut off half-way. Drains; an error is logged.
    Job,
    /// A convenience: refreshes a cache, reports a number. Aborts on cancel; an error is logged.
    Helper,
    /// Something the whole process cannot do without. Drains; an error stops the process.
    Critical,
}

impl TaskKind {
    /// What cancelling does to it.
    pub fn on_cancel(self) -> OnCancel {
        match self {
            Self::Helper => OnCancel::Abort,
            Self::Role | Self::Listener | Self::Connection | Self::Worker | Self::Job | Self::Critical => {
                OnCancel::Drain
            }
        }
    }

    /// What its error brings down.
    pub fn on_error(self) -> OnError {
        match self {
            Self::Connection | Self::Job | Self::Helper => OnError::Log,
            Self::Role | Self::Listener | Self::Worker => OnError::StopRole,
            Self::Critical => OnError::StopProcess,
        }
    }
}
