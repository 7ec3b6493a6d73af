//! What a caller may do about an error: retry, wait, or give up.

use std::time::Duration;

/// How the driver of the work treats an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Something went wrong that may pass; try again with back-off.
    Retry,
    /// Nothing is wrong, the time has not come; look again after this long. Not a warning.
    Wait(Duration),
    /// Trying again cannot help; report it to the caller.
    Terminal,
}

/// Every error that crosses a module boundary has a class.
pub trait Classify {
    fn class(&self) -> Class;
}
