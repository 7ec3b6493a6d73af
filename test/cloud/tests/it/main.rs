//! The local cloud against our client of Azure: faults, the log of mutations, crashes, the command line.

mod administration;
mod command_line;
mod durability;
mod exactly_once;
mod faults;
mod pipelines;
