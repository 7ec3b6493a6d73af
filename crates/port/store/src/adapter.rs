//! What every adapter needs and none may do differently: case folding, etags, preconditions, page tokens and
//! conditions on bodies, feed places and wake-ups. Services have no business here.

mod filter;
mod fold;
mod holds;
mod like;
mod marks;
mod needles;
mod place;
mod precondition;
mod signals;
mod token;

pub use filter::matches;
pub use fold::{fold, prefix_end};
pub use holds::{SortKey, compare_keys, holds, searchable, sort_keys};
pub use like::like_pattern;
pub use marks::{marked_by, marks};
pub use needles::{ESCAPE, may_hold, needles};
pub use place::Place;
pub use precondition::{Seen, etag_of, etag_parts, precondition};
pub use signals::Signals;
pub use token::{Position, position_of, token_for};
