//! Whole stacks, driven from outside.

mod azure_cli;
mod azure_sdk;
mod clients;
mod cloud_layout;
mod conditional;
mod credentials;
mod deletes;
mod durability;
mod error_pages;
mod errors;
mod operations;
mod paging;
mod preflight;
mod process;
mod published_contract;
mod python_sdk;
mod readme;
mod secrets;
mod subscriptions;
mod support;
mod walk;
mod weaknesses;
