//! The resource provider as a whole: frontend and backend in one process, over a scripted Clusters Service.
//!
//! What it is not: part of the product.

pub mod clusters_service;
