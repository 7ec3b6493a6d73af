//! Every saga works, survives the loss of the process at every write, and unwinds.

use std::collections::BTreeSet;
use std::sync::Arc;

use aro_control::saga::Registry;
use aro_control::saga::testing::{Proofs, World as Proven};
use aro_ocm::NodePoolId;

use super::scripted::{Site, World, record, route, target};
use crate::maestro::Trace;
use crate::manifests::{cluster_bundle_ids, pool_bundle_id};
use crate::provisioning::create::{CreateCluster, CreateCx};
use crate::provisioning::delete::{DeleteCluster, DeleteCx, Deletion};
use crate::records::Provisioned;

/// The sagas of the role.
fn registry() -> Registry {
    Registry::default().with::<CreateCluster>().with::<DeleteCluster>()
}

struct Creating {
    world: Arc<World>,
    cx: CreateCx,
    _site: Site,
}

struct Deleting {
    world: Arc<World>,
    cx: DeleteCx,
    _site: Site,
}

/// The triple test makes its worlds without waiting.
fn site(world: &Arc<World>) -> Site {
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| handle.block_on(Site::start(world.clone())))
}

fn creating() -> Creating {
    let world = Arc::new(World::default());
    let site = site(&world);
    let cx = CreateCx {
        environment: site.environment.clone(),
        infrastructure: world.clone(),
        target: target(),
        route: route(),
        record: record(),
    };
    Creating { world, cx, _site: site }
}

fn deleting() -> Deleting {
    let world = Arc::new(World::default());
    let site = site(&world);
    let pool = NodePoolId::parse("np1").unwrap();
    let mut exist = world.exist.lock();
    for what in ["group", "identities", "issuer", "pull-secret", "certificates", "records", "federation"] {
        exist.insert(what.to_owned());
    }
    let (source, id) = (route().source, record().id);
    for (_, bundle) in cluster_bundle_ids(&source, &id) {
        exist.insert(format!("bundle {bundle}"));
    }
    exist.insert(format!("bundle {}", pool_bundle_id(&source, &id, &pool)));
    drop(exist);
    let cx = DeleteCx {
        environment: site.environment.clone(),
        infrastructure: world.clone(),
        target: target(),
        route: route(),
        pools: vec![pool],
        trace: Trace::default(),
    };
    Deleting { world, cx, _site: site }
}

impl Proven<CreateCluster> for Creating {
    fn cx(&self) -> &CreateCx {
        &self.cx
    }

    fn begin(&self) -> Provisioned {
        Provisioned::default()
    }

    fn inventory(&self) -> BTreeSet<String> {
        self.world.exist.lock().clone()
    }

    fn turn(&self) {
        self.world.settle();
    }
}

impl Proven<DeleteCluster> for Deleting {
    fn cx(&self) -> &DeleteCx {
        &self.cx
    }

    fn begin(&self) -> Deletion {
        Deletion::default()
    }

    fn inventory(&self) -> BTreeSet<String> {
        self.world.exist.lock().clone()
    }

    fn turn(&self) {
        self.world.settle();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_saga_passes_the_triple_test() {
    let mut proofs = Proofs::new();
    proofs.prove::<CreateCluster, Creating>(creating).await;
    proofs.prove::<DeleteCluster, Deleting>(deleting).await;
    proofs.cover(&registry());
}

#[test]
fn names_of_sagas_and_steps_are_stored_and_stay() {
    let names: Vec<String> = registry()
        .sagas()
        .iter()
        .map(|saga| format!("{} {}: {}", saga.name, saga.version, saga.steps.join(" ")))
        .collect();
    assert_eq!(
        names,
        [
            "clusters.create 1: checks state-pending managed-resource-group identity-credentials oidc-issuer pull-secret certificates dns-records role-assignments egress dns-zone managed-nsg federated-credentials manifests",
            "clusters.delete 1: manifests namespaces managed-resource-group identity-credentials oidc-issuer pull-secret certificates dns-records federated-credentials",
        ]
    );
}
