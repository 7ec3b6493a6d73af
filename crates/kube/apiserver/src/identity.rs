//! Who calls, and what they may do.

pub mod authenticate;
pub mod authorize;
pub mod escalation;
pub mod impersonate;
pub mod keys;
pub mod nodes;
pub mod reviews;
pub mod rules;
pub mod signing;
pub mod tokens;
pub mod user;
