//! The whole chain: source → server → broker → agent → cluster, and back; what went wrong elsewhere, and what may go wrong.

mod away;
mod brokers;
mod causes;
mod certificates;
mod clocks;
mod ghosts;
mod incidents;
mod kills;
mod life;
mod meddling;
mod restores;
mod resyncs;
mod strangers;
