//! The whole chain: source → server → broker → agent → cluster, and back, with the defects of the original and with failures.

mod authorization;
mod broker_crashes;
mod certificates;
mod clock_skew;
mod crashes;
mod disconnected;
mod incidents;
mod known_defects;
mod lifecycle;
mod message_loss;
mod orphans;
mod restores;
mod resyncs;
