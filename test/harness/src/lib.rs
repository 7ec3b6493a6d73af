//! Stacks for tests: private, complete, on port 0 and a directory of their own.
//!
//! Two ways to run one: [`Stack`] lives in the test's process, many at a time; [`Process`] is the real binary as a
//! child, so that killing it is a real kill. Both give a client that speaks as ARM does.
//!
//! Invariants: nothing is left behind, neither a process nor a directory, also when a test panics.

mod binary;
mod process;
mod stack;

pub use binary::{Build, aro_binary, is_given};
pub use process::{Process, StoreChoice};
pub use stack::Stack;
