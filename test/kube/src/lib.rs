//! The differential tier: the same calls to our API server and to a real one, and every difference named.
//!
//! The flow: [`scenario`] reads calls from YAML, [`run`] makes each of them on both sides, [`normal`] takes out what is
//! allowed to differ (times, versions, random names), [`compare`] finds what differs after that, and [`known`] holds the
//! differences somebody has decided to live with, each with its reason.
//!
//! [`matrix`] asks for every route of discovery as several callers, and compares with the answers of a real server that
//! are checked in.
//!
//! Invariants: an unlisted difference fails; a listed one that is gone fails, too.

pub mod client;
pub mod compare;
pub mod inside;
pub mod known;
pub mod matrix;
pub mod normal;
pub mod ours;
pub mod real;
pub mod run;
pub mod scenario;
