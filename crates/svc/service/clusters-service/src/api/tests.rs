//! The API over its router, on a store of its own.

mod bodies;
mod clusters;
mod events;
mod fixture;
mod lists;
mod node_pools;
mod others;
mod phrases;
mod shards;
mod wire;
