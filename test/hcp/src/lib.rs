//! A region with everything between ARM and a management cluster, and what a customer brings to it.
//!
//! [`HcpRegion`] is `aro up` as a child process with the stand-in for `HyperShift` on its management cluster; [`Customer`]
//! makes a customer's side with the customer's own account, through the region's cloud, as the example script does with az.

mod customer;
mod inventory;
mod region;

pub use customer::{Cluster, Customer};
pub use inventory::Inventory;
pub use region::HcpRegion;
