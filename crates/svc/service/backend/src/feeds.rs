//! Where keys come from: the change feed of the documents, and the event feed of Clusters Service.
//!
//! Both start with a position and then a list, so that nothing falls between the two; both deliver at least once. A key says
//! only that something changed: a pass reads what is.

pub mod documents;
pub mod events;
