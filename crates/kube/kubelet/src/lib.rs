//! A virtual kubelet: nodes without machines, and the pods bound to them.
//!
//! What it is: it registers nodes, renews their leases, and brings the pods bound to them to life. A container whose
//! image is one of [`Images`] runs as supervised tasks of this process, with its real readiness, restarts and end. Every
//! other image is simulated: its containers go through the states of real ones on a script ([`simulate`]), nothing runs
//! behind them, and their pods say so (annotation `aro.dev/simulated`).
//!
//! What it is not: it makes no network and no isolation. The composition that provides an image is responsible for what it does.
//!
//! The flow: a pass looks at one pod and what is known of its containers (`pod`), starts, ends or steps them, and
//! writes the pod's status if that changed. Logs and connections are asked for through [`NodeApi`](aro_kube_node_api::NodeApi).
//!
//! Invariants:
//! * A simulated pod costs a few hundred bytes and no task, and survives a restart of the process as it is.
//! * A real container that died with the process is started again, and its restart count grows.
//! * A pod's files lie under one directory of its own, which goes with the pod.

mod addresses;
mod api;
mod bootstrap;
mod container;
mod environment;
mod host_paths;
mod image;
mod kubelet;
mod logs;
mod node;
mod pod;
mod probes;
pub mod simulate;
mod sources;
mod status;
mod volumes;

pub use bootstrap::{BootstrapError, join};
pub use host_paths::HostPaths;
pub use image::{ContainerSpec, Image, Images, Mount, NoImages, Started, Workload};
pub use kubelet::{Kubelet, KubeletOptions};
pub use node::NodeSpec;
