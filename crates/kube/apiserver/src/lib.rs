//! Embedded Kubernetes: any number of logical clusters in one process, behind one listener.
//!
//! What it is: an API server that unmodified clients accept, for clusters that cost next to nothing. Each logical cluster
//! has its own keys, types, roles and objects; all share one log on disk, one listener (told apart by the name the client
//! asks for in its TLS handshake) and one set of workers.
//!
//! Workloads are reconciled by ordinary controllers and run by a virtual kubelet in crates of their own (`workloads/`,
//! `kubelet/`), which use a cluster through `kube` as every other client does; `controller_activation` decides when a cluster has them.
//!
//! The flow: [`tls`] finds the cluster and who is asking, [`server`] authorizes and routes, `rest` decides on objects,
//! [`storage`] makes it durable and notifies watchers, `internal_controllers` do what follows.
//!
//! Invariants: nothing is answered as done before it is durable; an idle cluster has no task and no timer.

mod addresses;
pub mod bootstrap;
mod cache_cursor;
pub mod cluster;
pub mod clusters;
mod config;
mod controller_activation;
mod convert;
mod documents;
mod events;
pub mod http;
pub mod identity;
mod internal_controllers;
pub mod kubeconfig;
mod nodes;
mod observe;
mod rest;
mod role;
pub mod server;
mod service;
pub mod storage;
mod table;
pub mod tls;
mod types;

pub use aro_kube_kubelet::{ContainerSpec, Image, Images, Mount, NoImages, Started, Workload};
pub use cluster::Cluster;
pub use clusters::{Clusters, ClustersError};
pub use config::KubeConfig;
pub use controller_activation::ActivationOptions;
pub use identity::user::User;
pub use observe::Observer;
pub use role::{Kube, KubePorts};
pub use service::{ClusterService, InProcess};
