//! The engine over its HTTP service, in process, on a real store.

mod authorization;
mod deletion;
mod network;
mod secrets;
mod world;
mod wrong_input;
