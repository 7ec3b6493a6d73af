//! What every adapter needs and none may do differently: case folding, etags, preconditions, page tokens and
//! conditions on bodies. Services have no business here.

mod filter;
mod fold;
mod precondition;
mod token;

pub use filter::matches;
pub use fold::{fold, prefix_end};
pub use precondition::{Seen, etag_of, etag_parts, precondition};
pub use token::{Position, position_of, token_for};
