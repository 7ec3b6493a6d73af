//! The smallest role: a crate with a descriptor. Tests put it into a registry and expect it everywhere roles appear.
//!
//! What it is not: part of the product.

use std::net::SocketAddr;

use aro_role::{DebugListener, ListenerDescriptor, RoleDeployment, RoleDescriptor};
use aro_runtime::{
    BuildError, Checked, Component, Listener, Problems, Readiness, Role, RunError, Scope, Section,
};
use aro_web::{ServeOptions, serve};
use axum::Router;
use axum::routing::get;

aro_runtime::section! {
    /// A role of tests.
    pub struct ScratchConfig in "scratch" {
        /// Where it listens.
        pub listen: SocketAddr = ([127, 0, 0, 1], 0).into(),
        /// What it answers.
        pub greeting: String = "hello".to_owned(),
    }
}

impl Section for ScratchConfig {
    fn examine(&self, problems: &mut Problems) {
        if self.greeting.is_empty() {
            problems.add("greeting", "must not be empty");
        }
    }
}

/// The role's descriptor.
pub const DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Scratch::NAME,
    about: "Run the scratch role alone",
    command: "scratch",
    group: None,
    section: |schema| schema.with::<ScratchConfig>(),
    listeners: &[ListenerDescriptor {
        name: "http",
        port: 8080,
        endpoint: "scratch",
        about: "A greeting",
        key: "scratch.listen",
        address: |config| Ok(config.section::<ScratchConfig>()?.listen),
        scheme: |_| "http",
        debug: Some(DebugListener {
            key: "scratch.listen",
            address: |config| Ok(Some(config.section::<ScratchConfig>()?.listen)),
            scheme: "http",
        }),
    }],
    needs: &[],
    deployment: |cluster| {
        cluster.is_service().then(|| RoleDeployment {
            env: vec![("ARO_SCRATCH__GREETING".to_owned(), "hello from a pod".to_owned())],
            ..RoleDeployment::new("scratch", "scratch")
        })
    },
    beside: None,
    start: |mut context| {
        let ports = ScratchPorts { http: context.listener("http")?, readiness: context.readiness.clone() };
        context.launch::<Scratch>(ports)
    },
};

/// What the role needs from outside.
pub struct ScratchPorts {
    http: Listener,
    readiness: Readiness,
}

/// The role.
pub struct Scratch {
    config: Checked<ScratchConfig>,
    http: Listener,
    ready: Component,
}

impl Role for Scratch {
    const NAME: &'static str = "scratch";
    type Config = ScratchConfig;
    type Ports = ScratchPorts;

    fn build(config: Checked<ScratchConfig>, ports: ScratchPorts) -> Result<Self, BuildError> {
        let ready = ports.readiness.component(Self::NAME);
        Ok(Self { config, http: ports.http, ready })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let greeting = self.config.greeting.clone();
        let router = Router::new().route("/", get(move || std::future::ready(greeting.clone())));
        serve(self.http, router, &scope, ServeOptions::named(Self::NAME));
        self.ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}
