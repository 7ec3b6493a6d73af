//! The link of `aro-mqtt` against the embedded broker and against a real mosquitto: one suite, both must pass.

mod conformance;
mod embedded;
mod peers;
mod raw;
mod speed;
