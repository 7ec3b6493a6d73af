//! The wire: what a request asks for, and how an answer looks.

pub mod answer;
pub mod body;
pub mod media;
pub mod options;
pub mod target;
