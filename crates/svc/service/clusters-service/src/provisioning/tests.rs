//! What the tests of the pipelines share.

mod clusters;
mod sagas;
mod scripted;
mod states;
mod targets;
