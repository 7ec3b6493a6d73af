//! What a caller may do about an error: try again, wait for something, or give up.

use std::time::Duration;

/// How an error is to be treated by whoever drives the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Something went wrong that may pass; try again with back-off.
    Retry,
    /// Nothing is wrong, the time has not come; look again after this long. Not a warning.
    Wait(Duration),
    /// Trying again cannot help; tell whoever asked.
    Terminal,
}

/// Every error that crosses a module boundary says what class it is.
pub trait Classify {
    fn class(&self) -> Class;
}
