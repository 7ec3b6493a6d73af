//! An object stored through any version can be read and written back through any other, and nothing is lost.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::version::ApiVersion;
use serde_json::Value;

use crate::fixtures::*;

/// What a caller sees in every version, without the marks of the write itself.
fn views<T: Sample>(object: &T) -> Vec<Value> {
    ApiVersion::ALL
        .into_iter()
        .map(|version| {
            let mut view = object.render(version);
            remove(&mut view, "systemData");
            view
        })
        .collect()
}

fn survives<T: Sample>(stored: &T, what: &str) {
    for version in ApiVersion::ALL {
        let body = stored.render(version);
        let again = stored.replace(version, &body, &T::world().cx());
        let again = again.unwrap_or_else(|problems| panic!("{what} by {version}: {problems:?}"));
        assert_eq!(views(&again), views(stored), "{what} by {version}");
        let patched = stored.patch(version, &serde_json::json!({}), &T::world().cx()).unwrap();
        assert_eq!(views(&patched), views(stored), "{what} patched by {version}");
        let document = serde_json::to_vec(stored).unwrap();
        assert_eq!(serde_json::from_slice::<T>(&document).unwrap(), *stored, "{what} stored");
    }
}

#[test]
fn what_any_version_made_any_version_can_write() {
    for made_by in ApiVersion::ALL {
        survives(&Cluster::made(made_by), &format!("cluster made by {made_by}"));
        survives(&NodePool::made(made_by), &format!("node pool made by {made_by}"));
        survives(&ExternalAuth::made(made_by), &format!("external auth made by {made_by}"));
        let small = Cluster::create(made_by, &small_cluster_body(made_by), &World::cluster().cx()).unwrap();
        survives(&small, &format!("small cluster made by {made_by}"));
    }
}
